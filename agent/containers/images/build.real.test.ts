import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, inject, it } from 'vitest';
import type { PodSpec } from '#shared/api/agent/pod.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { command } from '../../../test/fakes/agents/real-host.ts';
import { eventually } from '../../../test/fakes/eventually.ts';
import {
  type FakeRegistry,
  startFakeRegistry,
} from '../../../test/fakes/external/fake-registry.ts';
import { TRUSTED_CLOCK } from '../../../test/fakes/trusted-clock.ts';
import { openDatabase } from '../../database/database.ts';
import { createDockerodeEngine } from '../engine/dockerode-engine.ts';
import { buildLabels, builtReference } from './build-context.ts';
import { createImages, type Images } from './images.ts';

const NEVER = new AbortController().signal;
const ignore = () => undefined;
const engine = createDockerodeEngine({ socketPath: '/var/run/docker.sock', clock: systemClock });
const executorId = systemRandom.uuid();
const labels = buildLabels(executorId);
const buildsFolder = join(tmpdir(), `podwright-builds-${executorId}`);
const network = `podwright-test-${executorId.slice(0, 8)}`;
const limits: PodSpec['limits'] = { cpu_cores: 1, memory_bytes: 2 ** 27, shm_bytes: 0, pids: 64 };
const BASE = 'FROM podwright.local/base:1';

let core: Images;
let registry: FakeRegistry;

beforeAll(async () => {
  registry = await startFakeRegistry();
  const mark = { ...labels, 'io.podwright.test-run': inject('testRun') };
  const bridgeName = `pb${executorId.slice(0, 8)}`;
  const subnet = `10.203.${systemRandom.int(256)}.${16 * systemRandom.int(16)}/28`;
  await engine.ensureNetwork(network, mark, { subnet, bridgeName });
  core = createImages({
    trust: TRUSTED_CLOCK,
    executorId,
    engine,
    buildsFolder,
    clock: systemClock,
    random: systemRandom,
    log: createLog({ name: 'test', level: 'silent' }),
    database: openDatabase(':memory:'),
    secret: systemRandom.bytes(32),
    busyboxPath: '/bin/busybox',
    networkOf: async () => network,
    diskPercent: async () => 0,
    marks: { start: 85, stop: 80 },
    usedByPods: () => [],
    buildKeysOfPods: () => [],
    onRemoved: ignore,
  });
});

afterEach(async () => {
  for (const { reference } of core.store.list()) await engine.removeImage(reference);
});

afterAll(async () => {
  await engine.removeNetwork(network);
  await registry.close();
  rmSync(buildsFolder, { recursive: true, force: true });
});

function build(dockerfile: string, change: Partial<typeof limits> = {}, signal = NEVER) {
  const wanted = { podId: executorId, dockerfile, auth: undefined };
  return core.builds.ensure({ ...wanted, limits: { ...limits, ...change } }, ignore, signal);
}

async function outputOf(dockerfile: string): Promise<string> {
  const lines = await core.logs.read(core.builds.keyOf(dockerfile, undefined));
  return lines.map(({ log }) => log).join('');
}

/** Returns the objects of builds in the engine, except finished images. */
async function leftOvers() {
  const containers = await engine.listContainers(labels);
  return { containers, images: await engine.listImages({ labels, unused: true }) };
}
const NOTHING = { containers: [], images: [] };

it('builds an image with the renter’s steps, and shows their output', async () => {
  const text = `${BASE}\nRUN echo "made by $(id -u)" > /made && cat /made\nCMD ["cat", "/made"]`;
  const { imageId } = await build(text);
  const run = await command('docker', 'run', '--rm', '--network', 'none', imageId);
  expect(run.stdout).toBe('made by 0\n');
  expect(await outputOf(text)).toMatch(
    /base:1 is sha256:[\s\S]*made by 0\n[\s\S]*Successfully built/,
  );
  expect(await leftOvers()).toEqual(NOTHING);
});

it('builds an identical Dockerfile once, also for concurrent pods', async () => {
  const text = `${BASE}\nRUN head -c 9 /dev/urandom | base64 > /once`;
  const [one, two] = await Promise.all([build(text), build(text)]);
  expect(two).toEqual(one);
  expect(await build(text)).toEqual(one);
  expect((await build(`${text}\nRUN true`)).imageId).not.toBe(one.imageId);
});

it('builds multiple stages and copies files between them', async () => {
  const text = `ARG B=podwright.local/base\nFROM $B:1 AS one\nRUN echo from-one > /f\nFROM scratch AS two\nCOPY --from=one /f /f\n${BASE}\nCOPY --from=two /f /g\nCOPY --from=podwright.local/base:1 /etc/group /h\nRUN cat /g /h`;
  await build(text);
  expect(await outputOf(text)).toMatch(/from-one\nroot:x:0/);
  expect(await leftOvers()).toEqual(NOTHING);
});

it('fails with the last lines of the failed step', async () => {
  const text = `${BASE}\nRUN echo "no such thing" >&2; exit 3`;
  const outcome = build(text);
  await expect(outcome).rejects.toMatchObject({
    name: 'BuildFailure',
    message: expect.stringMatching(/^Line 2: .*returned a non-zero code: 3\nno such thing$/),
  });
  const output = await outputOf(text);
  expect(output).toMatch(/^Step 2\/2 : RUN echo "no such thing"/m);
  expect(output).toMatch(/no such thing[\s\S]*\nThe build ended: Line 2: /);
  expect(output).not.toContain('io.podwright');
  expect(await leftOvers()).toEqual(NOTHING);
});

it.each([
  [`# mine\n${BASE}\n\nENV\nRUN true`, /^Line 4: dockerfile parse error: ENV requires/],
  [`${BASE}\nRUN true\nSTOPSIGNAL NONE`, /^Line 3: Invalid signal: NONE$/],
  ['FROM scratch\nCMD ["x"]', /^Line 1: scratch is empty: start from/],
  [`${BASE}\nCOPY . /app`, /^Line 2: COPY without --from/],
])('reports the line of the renter’s Dockerfile in the error for %j', async (text, message) => {
  await expect(build(text)).rejects.toMatchObject({
    name: 'BuildFailure',
    message: expect.stringMatching(message),
  });
});

it('aborts a build when its pod is removed, and leaves no objects in the engine', async () => {
  const leaving = new AbortController();
  const text = `${BASE}\nRUN echo begun; sleep 100`;
  const outcome = build(text, {}, leaving.signal).then(
    () => 'built',
    () => 'given up',
  );
  await eventually('the step', async () => (await outputOf(text)).includes('begun\n'));
  leaving.abort();
  expect(await outcome).toBe('given up');
  await eventually('the sweep', async () => {
    const left = await leftOvers();
    return left.containers.length + left.images.length === 0;
  });
});

it('limits memory, processes and disk of a step', async () => {
  await expect(
    build(`${BASE}\nRUN awk 'BEGIN { s = "x"; while (length(s) < 536870912) s = s s }'`),
  ).rejects.toMatchObject({
    message: expect.stringMatching(/non-zero code: 137/),
  });
  const forks = `${BASE}\nRUN sleep 2; for n in $(seq 1 90); do sleep 9 & done; wait`;
  await expect(build(forks, { pids: 40 })).rejects.toMatchObject({
    message: expect.stringMatching(/can't fork/),
  });
  const filling = build(`${BASE}\nRUN head -c 60m /dev/zero > /full; sleep 60`, {
    disk_bytes: 2 ** 25,
  });
  await expect(filling).rejects.toMatchObject({
    message: expect.stringMatching(/has written \d+ bytes; its limit is 33554432/),
  });
  expect(await leftOvers()).toEqual(NOTHING);
});

it('runs steps in the pod’s network, without privileges, and without the labels of a pod', async () => {
  const text = `${BASE}\nRUN ip -4 addr; grep CapEff /proc/self/status; sleep 3`;
  const building = build(text);
  const [step] = await eventually('the step', async () => {
    const found = await engine.listContainers(labels);
    return found.length > 0 && found[0]?.status === 'running' && found;
  });
  const format = '{{json .NetworkSettings.Networks}} {{.HostConfig.Privileged}}';
  const seen = await command('docker', 'inspect', '-f', format, step?.id ?? '');
  expect(seen.stdout).toMatch(new RegExp(`^{"${network}":.* false\n$`));
  expect(step?.labels['io.podwright.pod']).toBe('');
  await building;
  // The capabilities include neither SYS_ADMIN nor NET_ADMIN.
  const effective = /CapEff:\s+([0-9a-f]+)/.exec(await outputOf(text))?.[1] ?? 'f'.repeat(16);
  expect(BigInt(`0x${effective}`) & ((1n << 21n) | (1n << 12n))).toBe(0n);
});

it('pulls base images with the login, which is sent to its registry only', async () => {
  const name = `podwright-test/${systemRandom.uuid()}`;
  registry.publish(name, '1', 'private', { layers: [systemRandom.bytes(1_000)] });
  registry.requireLogin({ username: 'ann', password: 's3cret' });
  const reference = `${registry.host}/${name}:1`;
  const wanted = { podId: executorId, dockerfile: `FROM ${reference}\nCMD ["x"]`, limits };
  const auth = { host: registry.host, username: 'ann', password: 's3cret' };
  const ensure = (login: typeof auth | undefined) =>
    core.builds.ensure({ ...wanted, auth: login }, ignore, NEVER);
  await expect(ensure(undefined)).rejects.toMatchObject({ kind: 'image_auth' });
  await expect(ensure({ ...auth, host: 'r.example' })).rejects.toMatchObject({
    kind: 'image_auth',
  });
  expect((await ensure(auth)).imageId).toMatch(/^sha256:/);
  registry.requireLogin(null);
});

it('rejects a base with ONBUILD instructions', async () => {
  const name = `podwright-test/${systemRandom.uuid()}`;
  const config = { OnBuild: ['ADD http://169.254.169.254/ /x'] };
  registry.publish(name, '1', 'trigger', { config });
  const outcome = build(`FROM ${registry.host}/${name}:1`);
  await expect(outcome).rejects.toMatchObject({ message: expect.stringMatching(/ONBUILD/) });
});

it('finds the image of an earlier agent process by name, and the log in its file', async () => {
  const text = `${BASE}\nRUN echo ${systemRandom.uuid()}`;
  const first = await build(text);
  const key = core.builds.keyOf(text, undefined);
  expect(await engine.inspectImage(builtReference(executorId, key))).toMatchObject({
    id: first.imageId,
  });
  expect(core.logs.isRunning(key)).toBe(false);
  expect(await outputOf(text)).toContain('Successfully built');
});
