import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { PodPutInput, PodView } from '#shared/api/agent/pod.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import {
  type AgentHome,
  type AgentProcess,
  createAgentHome,
} from '../../../test/fakes/agents/agent-process.ts';
import { mustRun } from '../../../test/fakes/agents/real-host.ts';
import { podSpec } from '../../../test/fakes/agents/test-agent.ts';
import { eventually } from '../../../test/fakes/eventually.ts';
import {
  type FakeRegistry,
  startFakeRegistry,
} from '../../../test/fakes/external/fake-registry.ts';
import { freePorts } from '../../../test/fakes/free-ports.ts';

const NEVER = new AbortController().signal;
const BASE = 'FROM podwright.local/base:1';

let registry: FakeRegistry;
let home: AgentHome;
let agent: AgentProcess;
const pods = new Set<string>();

beforeAll(async () => {
  registry = await startFakeRegistry();
  const { first, last } = await freePorts(20);
  home = createAgentHome({
    AGENT_PORT_RANGE: `${first}-${last - 1}`,
    AGENT_GPU: 'none',
    AGENT_ALLOW_LOCAL_REGISTRIES: 'true',
    AGENT_POD_SUBNETS: '10.204.0.0/16',
    AGENT_MEMORY_RESERVE_MIB: '0',
  });
  agent = await home.start();
});

afterAll(async () => {
  for (const id of pods) await remove(id);
  await agent.stop();
  const labels = `label=io.podwright.executor=${home.executorId}`;
  const ids = (await mustRun('docker', 'images', '-q', '--filter', labels)).split('\n');
  for (const id of new Set(ids.filter(Boolean))) await mustRun('docker', 'rmi', '-f', id);
  home.remove();
  await registry.close();
});

async function remove(id: string): Promise<void> {
  await agent.client.deletePod(id);
  await eventually(`removal of ${id}`, async () => {
    return (await agent.client.getPod(id)).phase === 'removed';
  });
  pods.delete(id);
}

async function put(change: Partial<PodPutInput>): Promise<string> {
  const id = systemRandom.uuid();
  const spec = podSpec({ internal_ports: [] });
  await agent.client.putPod(id, { ...spec, ...change });
  pods.add(id);
  return id;
}

function settled(id: string, phases: readonly PodView['phase'][] = ['running', 'failed']) {
  return eventually(`pod ${id}`, async () => {
    const view = await agent.client.getPod(id);
    return phases.includes(view.phase) && view;
  });
}

/** Returns all frames of a log without following it. */
async function framesOf(id: string, query: { tail?: number; since?: string } = {}) {
  const options = { tail: 1_000, follow: false, ...query };
  const frames = await Array.fromAsync(await agent.client.podLogs(id, options, NEVER));
  return frames.flatMap((frame) => ('log' in frame ? [frame] : []));
}

it('runs a pod from a Dockerfile; the build’s output comes first in its log', async () => {
  const dockerfile = `${BASE}\nRUN sleep 1; echo building-it\nCMD ["sh", "-c", "echo running-it; sleep 1000"]`;
  const id = await put({ image: { dockerfile } });
  const seen = await settled(id, ['building', 'running']);
  expect(seen.phase).toBe('building');
  const view = await settled(id);
  expect(view).toMatchObject({
    phase: 'running',
    image: { reference: 'dockerfile', digest: null },
  });
  const frames = await eventually('the output', async () => {
    const found = await framesOf(id);
    return found.at(-1)?.log === 'running-it\n' && found;
  });
  const built = frames.findIndex(({ log }) => log === 'building-it\n');
  expect(built).toBeGreaterThan(0);
  expect(built).toBeLessThan(frames.length - 1);
  // A reader resumes at its position, in the build's and in the container's output.
  const rest = await framesOf(id, { since: frames[built]?.id ?? '' });
  expect(rest.map(({ log }) => log)).toEqual(frames.slice(built + 1).map(({ log }) => log));
  expect(await framesOf(id, { since: frames.at(-1)?.id ?? '' })).toEqual([]);
  expect((await framesOf(id, { tail: 2 })).map(({ log }) => log)).toEqual(
    frames.slice(-2).map(({ log }) => log),
  );

  const again = await put({ image: { dockerfile } });
  const started = await settled(again);
  expect(started.phase).toBe('running');
  const [one, two] = await Promise.all(
    [view, started].map(({ container_id: container }) =>
      mustRun('docker', 'inspect', '-f', '{{.Image}}', container ?? ''),
    ),
  );
  expect(two).toBe(one);
});

it('fails the pod permanently when a build step fails, and shows the step’s output', async () => {
  const id = await put({ image: { dockerfile: `${BASE}\nRUN echo oh-no; exit 7` } });
  const view = await settled(id);
  expect(view).toMatchObject({
    phase: 'failed',
    reason: 'BuildFailed',
    message: expect.stringMatching(/non-zero code: 7\n[\s\S]*oh-no/),
  });
  expect((await framesOf(id)).map(({ log }) => log)).toContain('oh-no\n');
});

it('rejects local registries, and a login that no image uses', async () => {
  const refused = (spec: Partial<PodPutInput>) =>
    expect(put(spec)).rejects.toMatchObject({ code: 'spec_refused' });
  await refused({ image: { dockerfile: `${BASE}\nADD http://169.254.169.254/ /x` } });
  await refused({ image: { dockerfile: 'RUN true' } });
  const auth = { host: 'r.example', username: 'ann', password: 'x' };
  await refused({ registry_auth: auth });
  await refused({ registry_auth: auth, image: { dockerfile: BASE } });
});

it('pulls with the pod’s login, and never shows the login', async () => {
  const name = `podwright-test/${systemRandom.uuid()}`;
  const password = `S3CRET-${systemRandom.uuid()}`;
  const digest = registry.publish(name, '1', 'private', { layers: [systemRandom.bytes(2_000)] });
  registry.requireLogin({ username: 'ann', password });
  const image = { reference: `${registry.host}/${name}:1` };
  const registry_auth = { host: registry.host, username: 'ann', password };
  const without = await put({ image });
  expect(await settled(without)).toMatchObject({ phase: 'failed', reason: 'ImageAuth' });
  const id = await put({ image, registry_auth });
  // The image contains no program, because the test needs only the pull.
  const view = await eventually('the pull', async () => {
    const now = await agent.client.getPod(id);
    return now.image.digest === digest && now;
  });
  expect(JSON.stringify([view, await agent.client.listPods()])).not.toContain(password);
  const { last_pull: pull } = await agent.client.getPod(id);
  expect(pull).toMatchObject({ bytes: pull?.image_bytes, is_whole: true });
  expect(pull?.image_bytes).toBeGreaterThan(2_000);
  const response = await agent.send({ method: 'GET', path: `/v1/pods/${id}` });
  expect(await response.text()).not.toContain('registry_auth');
  for (const file of readdirSync(agent.home, { recursive: true, withFileTypes: true })) {
    if (!file.isFile()) continue;
    const content = readFileSync(join(file.parentPath, file.name));
    expect([file.name, content.includes(password)]).toEqual([file.name, false]);
  }
  const inspected = await mustRun(
    'docker',
    'image',
    'inspect',
    `${registry.host}/${name}@${digest}`,
  );
  expect(inspected).not.toContain(password);
  await remove(id);
  await remove(without);
  execFileSync('docker', ['rmi', `${registry.host}/${name}@${digest}`]);
  registry.requireLogin(null);
});

it('repeats a build after the agent was killed, and removes the first attempt’s objects', async () => {
  const marker = systemRandom.uuid();
  const dockerfile = `${BASE}\nRUN echo ${marker}; sleep 4\nCMD ["sleep", "1000"]`;
  const id = await put({ image: { dockerfile } });
  const labels = ['--filter', `label=io.podwright.executor=${home.executorId}`];
  const steps = async () =>
    (
      await mustRun('docker', 'ps', '-q', ...labels, '--filter', 'label=io.podwright.kind=build')
    ).trim();
  await eventually('the step', async () => (await steps()) !== '');
  await agent.kill();
  await eventually('the end of the step', async () => (await steps()) === '');
  agent = await home.start();
  // The message includes the agent's own text if the pod does not run.
  const { phase, message } = await settled(id);
  expect([phase, message]).toEqual(['running', '']);
  const unnamed = ['--filter', 'dangling=true'];
  expect(await mustRun('docker', 'images', '-q', ...labels, ...unnamed)).toBe('');
  await remove(id);
});
