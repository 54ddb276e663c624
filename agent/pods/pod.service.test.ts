import { beforeEach, expect, it } from 'vitest';
import { PodSpec, type PodSpecInput } from '#shared/api/agent/pod.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createTestAgent, fakeGpus, podSpec } from '../../test/fakes/agents/test-agent.ts';
import {
  breakEngine,
  createFakeEngine,
  type FakeEngine,
  holdEngine,
} from '../../test/fakes/engine/fake-engine.ts';
import { createJumpingClock, type JumpingClock } from '../../test/fakes/jumping-clock.ts';
import type { Agent } from '../app.ts';
import type { EngineError } from '../containers/engine/engine.ts';
import { LATE_OOM_MS } from './oom-events.ts';
import { OOM_REPORT_MS } from './plan-facts.ts';
import { TOMBSTONE_MS } from './reconcile.job.ts';

const IMAGE = 'registry.example/one:1';
const OTHER_IMAGE = 'registry.example/two:1';
const DIGEST = `sha256:${'a1'.repeat(32)}`;
const OTHER_DIGEST = `sha256:${'b2'.repeat(32)}`;
const ID = '00000000-0000-4000-8000-000000000001';
const ID_2 = '00000000-0000-4000-8000-000000000002';
const GPU = 'GPU-00000000-0000-4000-8000-000000000000';
const EXECUTOR = '00000000-0000-4000-8000-00000000000e';
const LONGEST_BACKOFF_MS = 300_000;
/** Time after which every exit is recorded. Times of the fake engine are some milliseconds ahead. */
const EXIT_RECORDED_MS = OOM_REPORT_MS + 10;
/** Number of event-loop turns that suffices for any chain of steps on the fake engine. */
const TURNS = 30;

let clock: JumpingClock;
let engine: FakeEngine;
let busyGpus: Set<string>;
let agent: Agent;

beforeEach(() => {
  clock = createJumpingClock();
  engine = createFakeEngine(clock);
  engine.addImage(IMAGE, DIGEST);
  engine.addImage(OTHER_IMAGE, OTHER_DIGEST);
  busyGpus = new Set();
  agent = createTestAgent({
    engine,
    clock,
    executorId: EXECUTOR,
    random: { ...systemRandom, int: (maxExclusive) => maxExclusive - 1 },
    gpus: fakeGpus([GPU], busyGpus),
    portRange: { first: 20_000, last: 20_001 },
  });
  agent.start();
});

/** Runs everything that does not wait for time. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn += 1) await clock.advance(0);
}

/** Advances the clock and runs what is due. */
async function pass(ms: number): Promise<void> {
  await settle();
  await clock.advance(ms);
  await settle();
}

const spec = (change: Partial<PodSpecInput> = {}) =>
  PodSpec.parse(podSpec({ image: { reference: IMAGE }, ...change }));

async function putAndSettle(change: Partial<PodSpecInput> = {}, id = ID) {
  await agent.pods.put(id, spec(change));
  await settle();
  return agent.pods.get(id);
}

const onlyContainer = () => [...engine.containers.values()][0];

it('runs the image by digest, also in a new container', async () => {
  expect(await putAndSettle()).toMatchObject({
    phase: 'running',
    image: { reference: IMAGE, digest: DIGEST },
    ports: { '8000': 20_000 },
  });
});

it.each<[string, Partial<PodSpecInput>, string, string]>([
  ['same generation, other content', { command: ['x'] }, 'conflict', 'other content'],
  [
    'a GPU that the host does not have',
    { gpu_uuids: [GPU.replace(/0$/, '9')], generation: 2 },
    'gpu_unavailable',
    'no GPU',
  ],
  [
    'more memory than the host has',
    { generation: 2, limits: { cpu_cores: 1, memory_bytes: 2 ** 33, shm_bytes: 0, pids: 64 } },
    'spec_refused',
    'limits.memory_bytes',
  ],
  [
    'more cores than the host has',
    { generation: 2, limits: { cpu_cores: 2.5, memory_bytes: 2 ** 26, shm_bytes: 0, pids: 64 } },
    'spec_refused',
    'limits.cpu_cores',
  ],
  [
    'a duplicate port',
    { generation: 2, internal_ports: [80, 80] },
    'spec_refused',
    'internal_ports',
  ],
  ['too many ports', { generation: 2, internal_ports: [80, 81] }, 'conflict', 'PortPoolExhausted'],
])('rejects %s and changes nothing', async (_, change, code, words) => {
  const before = await putAndSettle();
  const refusal = agent.pods.put(ID, spec(change));
  await expect(refusal).rejects.toMatchObject({ code, message: expect.stringContaining(words) });
  expect(agent.pods.get(ID)).toEqual(before);
});

it('rejects an older generation and the id of a removed pod', async () => {
  await putAndSettle({ generation: 3 });
  await expect(agent.pods.put(ID, spec({ generation: 2 }))).rejects.toMatchObject({
    code: 'conflict',
  });
  await agent.pods.remove(ID);
  await settle();
  await expect(agent.pods.put(ID, spec({ generation: 4 }))).rejects.toMatchObject({
    code: 'conflict',
  });
});

it('stores nothing for a pod whose GPU is leased', async () => {
  await putAndSettle({ gpu_uuids: [GPU] });
  const second = agent.pods.put(ID_2, spec({ gpu_uuids: [GPU] }));
  await expect(second).rejects.toMatchObject({ code: 'gpu_unavailable', status: 409 });
  expect(() => agent.pods.get(ID_2)).toThrow('no such pod');
  expect(agent.core.portLeases.freeCount()).toBe(1);
});

it('blocks a GPU whose processes outlive the pod until these processes have ended', async () => {
  await putAndSettle({ gpu_uuids: [GPU] });
  busyGpus.add(GPU);
  await agent.pods.remove(ID);
  await settle();
  expect(agent.pods.get(ID).phase).toBe('removed');
  const put = () => agent.pods.put(ID_2, spec({ gpu_uuids: [GPU] }));
  await expect(put()).rejects.toMatchObject({ code: 'gpu_unavailable' });
  busyGpus.clear();
  await pass(10_000);
  expect(await put()).toMatchObject({ gpu_uuids: [GPU], simulated: true });
});

it('does not request simulated GPUs from the engine, and hides real ones', async () => {
  await putAndSettle({ gpu_uuids: [GPU], environment: { NVIDIA_VISIBLE_DEVICES: 'all', A: 'b' } });
  expect(onlyContainer()?.spec.gpuUuids).toEqual([]);
  expect(onlyContainer()?.spec.environment).toEqual({ A: 'b', NVIDIA_VISIBLE_DEVICES: 'void' });
});

it('aborts the pull of an old generation when a new one arrives', async () => {
  const release = holdEngine(engine, 'inspectImage');
  await agent.pods.put(ID, spec());
  await settle();
  expect(agent.pods.get(ID)).toMatchObject({ phase: 'pulling' });
  await agent.pods.put(ID, spec({ generation: 2, image: { reference: OTHER_IMAGE } }));
  release();
  await settle();
  expect(agent.pods.get(ID)).toMatchObject({ phase: 'running', image: { digest: OTHER_DIGEST } });
  expect(onlyContainer()?.spec.image).toBe(OTHER_DIGEST);
});

it('aborts a pull when the pod is removed', async () => {
  const release = holdEngine(engine, 'pullImage');
  await agent.pods.put(ID, spec());
  await settle();
  await agent.pods.remove(ID);
  await settle();
  expect(agent.pods.get(ID).phase).toBe('removed');
  release();
  await settle();
  expect(engine.containers.size).toBe(0);
});

it('keeps the last known phase while the engine does not answer', async () => {
  const before = await putAndSettle();
  engine.setAway(true);
  await pass(60_000);
  expect(agent.pods.get(ID)).toMatchObject({
    phase: 'running',
    container_id: before.container_id,
    restart_count: 0,
    reason: 'DockerUnavailable',
  });
  engine.setAway(false);
  await pass(10_000);
  const worked = { launched: true, updated_ms: expect.any(Number) };
  expect(agent.pods.get(ID)).toEqual({ ...before, ...worked });
});

it('accepts a pod while the engine does not answer, and launches it once the engine answers', async () => {
  engine.setAway(true);
  expect(await putAndSettle()).toMatchObject({ phase: 'pending', reason: 'DockerUnavailable' });
  engine.setAway(false);
  await pass(20_000);
  expect(agent.pods.get(ID)).toMatchObject({ phase: 'running', reason: null });
});

it.each<[string, EngineError['kind'], string]>([
  ['pullImage', 'image_auth', 'ImageAuth'],
  ['pullImage', 'image_not_found', 'ImageNotFound'],
  ['createContainer', 'refused', 'SpecRefused'],
  ['startContainer', 'device', 'RuntimeMissing'],
  ['startContainer', 'refused', 'StartFailed'],
])('fails the pod when %s fails with %s', async (method, kind, reason) => {
  const mend = breakEngine(engine, method, kind);
  await putAndSettle();
  await pass(LONGEST_BACKOFF_MS);
  expect(agent.pods.get(ID)).toMatchObject({ phase: 'failed', reason, next_retry_ms: null });
  mend();
  expect(await putAndSettle({ generation: 2 })).toMatchObject({ phase: 'running', reason: null });
});

it.each<[string, EngineError['kind'], string]>([
  ['pullImage', 'image_rate_limited', 'ImageRateLimited'],
  ['pullImage', 'image_stalled', 'ImageStalled'],
  ['pullImage', 'image_unreachable', 'ImageUnreachable'],
  ['createContainer', 'deadline', 'DeadlineExceeded'],
  ['startContainer', 'port_busy', 'PortConflict'],
])('retries %s after %s', async (method, kind, reason) => {
  const random = { ...systemRandom, int: (maxExclusive: number) => maxExclusive - 1 };
  agent = createTestAgent({ engine, clock, random, executorId: systemRandom.uuid() });
  agent.start();
  const mend = breakEngine(engine, method, kind);
  expect(await putAndSettle()).toMatchObject({ phase: 'backoff', reason, last_exit: null });
  mend();
  await pass(LONGEST_BACKOFF_MS);
  expect(agent.pods.get(ID)).toMatchObject({ phase: 'running', reason: null, restart_count: 0 });
});

it.each<[number, boolean, string]>([
  [0, false, 'ExitedZero'],
  [3, false, 'ExitedNonZero'],
  [0, true, 'OOMKilled'],
  [137, false, 'ExitedNonZero'],
])('restarts after exit %i, out of memory %s', async (exitCode, oom, reason) => {
  const { container_id } = await putAndSettle();
  engine.exit(container_id ?? '', exitCode, oom);
  await pass(EXIT_RECORDED_MS);
  const exit = { exit_code: exitCode, oom_killed: oom, reason };
  expect(agent.pods.get(ID)).toMatchObject({ phase: 'backoff', reason, last_exit: exit });
  await pass(1_000);
  expect(agent.pods.get(ID)).toMatchObject({
    phase: 'running',
    restart_count: 1,
    container_id,
    last_exit: exit,
    reason: null,
  });
});

it.each([
  ['of the process', 137],
  ['of its child', 9],
])(
  'explains an exit by an out-of-memory kill %s that the engine reports later',
  async (_, exit_code) => {
    const { container_id } = await putAndSettle();
    const id = container_id ?? '';
    engine.exit(id, exit_code, false);
    await pass(EXIT_RECORDED_MS);
    expect(agent.pods.get(ID)).toMatchObject({ reason: 'ExitedNonZero' });
    engine.reportOom(id);
    await settle();
    const last_exit = { exit_code, oom_killed: true, reason: 'OOMKilled' };
    const message = `The pod ran out of its memory (exit code ${exit_code})`;
    const explained = { phase: 'backoff', reason: 'OOMKilled', message, last_exit };
    expect(agent.pods.get(ID)).toMatchObject(explained);
    await pass(1_000);
    expect(agent.pods.get(ID)).toMatchObject({ phase: 'running', reason: null, last_exit });
  },
);

it.each([
  ['an exit with status 0', 0, 0, 'ExitedZero'],
  ['an exit long after a kill', 137, LATE_OOM_MS + 1_000, 'ExitedNonZero'],
])('does not explain %s by an out-of-memory kill', async (_, exitCode, afterMs, reason) => {
  const { container_id } = await putAndSettle();
  const id = container_id ?? '';
  engine.reportOom(id);
  await pass(afterMs);
  engine.exit(id, exitCode, false);
  await pass(EXIT_RECORDED_MS);
  const last_exit = { exit_code: exitCode, oom_killed: false, reason };
  expect(agent.pods.get(ID)).toMatchObject({ phase: 'backoff', last_exit });
});

it('explains an exit whose event was processed before the exit was recorded', async () => {
  const { container_id } = await putAndSettle();
  const id = container_id ?? '';
  engine.exit(id, 137, false);
  await settle();
  expect(agent.pods.get(ID)).toMatchObject({ phase: 'running', last_exit: null });
  engine.reportOom(id);
  await settle();
  expect(agent.pods.get(ID)).toMatchObject({ phase: 'backoff', last_exit: { oom_killed: true } });
});

it('deletes the row of a removed pod after a day', async () => {
  await putAndSettle();
  await agent.pods.remove(ID);
  await pass(10_000);
  expect(agent.pods.list()).toEqual([]);
  expect(await agent.pods.remove(ID)).toMatchObject({ phase: 'removed', ports: {} });
  clock.setAhead(TOMBSTONE_MS);
  await pass(20_000);
  await expect(agent.pods.remove(ID)).rejects.toThrow('no such pod');
});

it('accepts reboots in order, each once, and only for a pod with a container', async () => {
  await putAndSettle();
  expect(() => agent.pods.reboot(ID, 2)).toThrow('number 1');
  expect(agent.pods.reboot(ID, 1)).toMatchObject({ reboots_requested: 1, reboots_done: 0 });
  await settle();
  expect(agent.pods.reboot(ID, 1)).toMatchObject({ reboots_done: 1, phase: 'running' });
  await agent.pods.remove(ID);
  expect(() => agent.pods.reboot(ID, 2)).toThrow('cannot be rebooted');
});

it('replaces a container whose task the runtime still has, unless the container has run', async () => {
  const mend = breakEngine(engine, 'startContainer', 'task_left');
  await putAndSettle();
  expect(engine.containers.size).toBe(0);
  mend();
  await pass(LONGEST_BACKOFF_MS);
  const view = agent.pods.get(ID);
  expect(view).toMatchObject({ phase: 'running', restart_count: 0 });

  const mendAgain = breakEngine(engine, 'startContainer', 'task_left');
  engine.exit(view.container_id ?? '', 1);
  await pass(15_000);
  expect(agent.pods.get(ID).reason).not.toBeNull();
  expect(onlyContainer()).toMatchObject({ id: view.container_id, status: 'exited' });
  mendAgain();
  await pass(LONGEST_BACKOFF_MS);
  expect(agent.pods.get(ID)).toMatchObject({ phase: 'running', container_id: view.container_id });
});

it('stops a pod and keeps its data, even if the agent is killed, and starts it again', async () => {
  const before = await putAndSettle();
  expect(agent.pods.setStopped(ID, true)).toMatchObject({ stopped: true });
  await settle();
  expect(onlyContainer()).toMatchObject({ id: before.container_id, status: 'exited' });
  await pass(LONGEST_BACKOFF_MS);
  expect(onlyContainer()).toMatchObject({ id: before.container_id, status: 'exited' });
  expect(agent.pods.get(ID)).toMatchObject({ stopped: true, ports: before.ports, reason: null });
  agent.pods.setStopped(ID, true);
  agent.pods.setStopped(ID, false);
  await settle();
  expect(agent.pods.get(ID)).toMatchObject({
    stopped: false,
    phase: 'running',
    container_id: before.container_id,
    restart_count: before.restart_count,
  });
  agent.pods.setStopped(ID, true);
  await agent.pods.remove(ID);
  await settle();
  expect(agent.pods.get(ID).phase).toBe('removed');
  expect(() => agent.pods.setStopped(ID, false)).toThrow('being removed');
});
