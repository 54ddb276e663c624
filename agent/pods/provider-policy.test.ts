import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { PodSpec, type PodSpecInput } from '#shared/api/agent/pod.ts';
import { agentArguments, COMPILE_CACHE } from '#shared/runtime/node-process.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { podSpec } from '../../test/fakes/agents/test-agent.ts';
import {
  NO_POLICY,
  PolicyError,
  ProviderPolicy,
  providerRefusals,
  readPolicyFile,
} from './provider-policy.ts';

const folder = mkdtempSync(join(tmpdir(), 'podwright-policy-'));
afterAll(() => rmSync(folder, { recursive: true }));

function fileWith(text: string): string {
  const path = join(folder, 'policy.json');
  writeFileSync(path, text);
  return path;
}

it('reads a policy file', () => {
  const path = fileWith('{"registries":{"allow":["docker.io"]},"max_pods":2}');
  expect(readPolicyFile(path)).toMatchObject({
    registries: { allow: ['docker.io'], deny: [] },
    max_pods: 2,
  });
});

it.each([
  ['{"max_pod": 2}', 'max_pod'],
  ['{"registries":{"allow":["a b"]}}', 'registries.allow.0'],
  ['{"max_pids":"many","max_ports":65}', 'max_pids'],
  ['{', 'JSON'],
  ['[]', 'the whole'],
])('names what is wrong in %s', (text, named) => {
  const read = () => readPolicyFile(fileWith(text));
  expect(read).toThrow(PolicyError);
  expect(read).toThrow(named);
});

it('reports a missing or unreadable file', () => {
  expect(() => readPolicyFile(join(folder, 'none.json'))).toThrow(/AGENT_POLICY .*ENOENT/);
  expect(() => readPolicyFile(folder)).toThrow(/not a file/);
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  expect(() => readPolicyFile(pipe)).toThrow(/not a file/);
});

it('prevents the agent’s start on an invalid file, before any file is created', async () => {
  const env = {
    AGENT_EXECUTOR_ID: '00000000-0000-4000-8000-00000000000e',
    AGENT_HOME: join(folder, 'home'),
    NODE_COMPILE_CACHE: COMPILE_CACHE,
    AGENT_POLICY: fileWith('{"max_pids":"many"}'),
  };
  const bounds = { timeoutMs: 30_000, maxOutputBytes: 100_000, env };
  for (const args of [[], ['--check-config']]) {
    const run = await runCommand(process.execPath, agentArguments(...args), bounds);
    expect(run).toMatchObject({ exitCode: 6, stderr: expect.stringContaining('max_pids') });
  }
  expect(() => rmSync(env.AGENT_HOME, { recursive: true })).toThrow('ENOENT');
});

const image = (reference: string) => ({ image: { reference } });
const limits = podSpec().limits;
const rulesAgainst = (policy: object, change: Partial<PodSpecInput>) =>
  providerRefusals(PodSpec.parse(podSpec(change)), ProviderPolicy.parse(policy)).map(
    ({ field, rule }) => `${rule}: ${field}`,
  );

it('accepts every pod without a policy', () => {
  const spec = PodSpec.parse(podSpec({ ...image('ghcr.io/a/b:1'), entrypoint: ['/bin/sh'] }));
  expect(providerRefusals(spec, NO_POLICY)).toEqual([]);
});

it.each<[string, object, Partial<PodSpecInput>, string[]]>([
  [
    'another registry',
    { registries: { allow: ['ghcr.io'] } },
    image('ubuntu'),
    ['registries: image.reference'],
  ],
  ['an allowed registry', { registries: { allow: ['docker.io'] } }, image('ubuntu'), []],
  [
    'a denied registry under its other name',
    { registries: { deny: ['docker.io'] } },
    image('index.docker.io/a/b'),
    ['registries: image.reference'],
  ],
  [
    'an image that both lists name',
    { images: { allow: ['*'], deny: ['*miner*'] } },
    image('a/xminer:1'),
    ['images: image.reference'],
  ],
  ['the built-in image', { registries: { allow: [] }, images: { allow: [] } }, {}, []],
  ['more cores', { max_cpu_cores: 0.4 }, {}, ['max_cpu_cores: limits.cpu_cores']],
  ['exactly the maximum of cores', { max_cpu_cores: 0.5 }, {}, []],
  ['more memory', { max_memory_bytes: 2 ** 25 }, {}, ['max_memory_bytes: limits.memory_bytes']],
  ['more shared memory', { max_shm_bytes: 1 }, {}, ['max_shm_bytes: limits.shm_bytes']],
  ['more processes', { max_pids: 63 }, {}, ['max_pids: limits.pids']],
  [
    'more disk',
    { max_disk_bytes: 2 ** 30 },
    { limits: { ...limits, disk_bytes: 2 ** 31 } },
    ['max_disk_bytes: limits.disk_bytes'],
  ],
  ['a disk without limit', { max_disk_bytes: 2 ** 30 }, {}, ['max_disk_bytes: limits.disk_bytes']],
  ['more ports', { max_ports: 1 }, { internal_ports: [22, 80] }, ['max_ports: internal_ports']],
  [
    'an entrypoint',
    { allow_entrypoint: false },
    { entrypoint: ['/bin/sh'] },
    ['allow_entrypoint: entrypoint'],
  ],
  [
    'a denied variable',
    { denied_environment: ['LD_*'] },
    { environment: { LD_PRELOAD: 'x' } },
    ['denied_environment: environment'],
  ],
  ['other variables', { denied_environment: ['LD_*'] }, { environment: { OLD_PATH: 'x' } }, []],
  [
    'several broken rules at once',
    { max_ports: 0, max_pids: 16 },
    {},
    ['max_pids: limits.pids', 'max_ports: internal_ports'],
  ],
])('checks %s', (_, policy, change, expected) => {
  expect(rulesAgainst(policy, change)).toEqual(expected);
});

it('checks the base images of a Dockerfile', () => {
  const spec = PodSpec.parse(podSpec());
  const built = { ...spec, image: { ...spec.image, dockerfile: 'FROM scratch' } };
  const rules = (policy: object) => providerRefusals(built, ProviderPolicy.parse(policy));
  expect(rules({})).toEqual([]);
  expect(rules({ allow_builds: false })).toMatchObject([{ field: 'image.dockerfile' }]);
});
