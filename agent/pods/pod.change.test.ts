import { afterEach, beforeEach, expect, it } from 'vitest';
import { PodSpec, type PodSpecInput } from '#shared/agent-api/pod.ts';
import { sshKeysHash } from '#shared/agent-api/ssh-keys-hash.ts';
import { createFakeEngine, type FakeEngine } from '../../test/fakes/fake-engine.ts';
import { createManualClock, type ManualClock } from '../../test/fakes/manual-clock.ts';
import { createSeededRandom } from '../../test/fakes/seeded-random.ts';
import {
  createTestAgent,
  fakeGpus,
  NO_GATEWAY,
  podSpec,
  TEST_HOST,
} from '../../test/fakes/test-agent.ts';
import type { Agent } from '../app.ts';
import { EngineError } from '../docker/engine.ts';
import type { GatewayPodStatus, GatewaySnapshot } from '../ssh/gateway-files.ts';
import { openDatabase } from '../store/database.ts';
import { LOGIN_WAIT_MS, SETTLING_MS } from './pod.trial.ts';

const IMAGE = 'registry.example/one:1';
const OTHER_IMAGE = 'registry.example/two:1';
const MISSING = 'registry.example/missing:1';
const ID = '00000000-0000-4000-8000-000000000001';
const GPUS = [0, 1].map((n) => `GPU-00000000-0000-4000-8000-00000000000${n}`);
const EXECUTOR = '00000000-0000-4000-8000-00000000000e';
/** Enough turns for any chain of steps that waits for nothing but the fake. */
const TURNS = 30;
const A_MINUTE_MS = 60_000;
/** The fake engine may be some milliseconds ahead of the clock. */
const PROVEN_MS = SETTLING_MS + 1_000;

let clock: ManualClock;
let engine: FakeEngine;
let agent: Agent;
let store: ReturnType<typeof openDatabase>;
let told: GatewaySnapshot;
/** What the gateway says of a container; null: it is away. */
let login: ((containerId: string) => boolean) | null;

beforeEach(() => {
  clock = createManualClock();
  engine = createFakeEngine(clock);
  engine.addImage(IMAGE, `sha256:${'a1'.repeat(32)}`);
  engine.addImage(OTHER_IMAGE, `sha256:${'b2'.repeat(32)}`);
  told = { pods: [] };
  login = null;
  agent = boot();
});
afterEach(() => agent.stop());

function statusOf(): GatewayPodStatus | null {
  const [pod] = told.pods;
  if (login === null || pod === undefined) return null;
  const { port, container_id } = pod;
  const ready = container_id !== null && login(container_id);
  return { port, container_id, ready, port_taken: false, message: 'no shell', since_ms: 0 };
}

function boot(database = openDatabase(':memory:'), bootId = 'boot'): Agent {
  store = database;
  const created = createTestAgent({
    ...{ engine, clock, database, executorId: EXECUTOR, random: createSeededRandom(1) },
    host: { ...TEST_HOST, bootId },
    gpus: fakeGpus(GPUS),
    portRange: { first: 20_000, last: 20_003 },
    gatewayLink: {
      ...NO_GATEWAY,
      publish: (snapshot) => {
        told = snapshot;
      },
      statusOf,
    },
  });
  created.start();
  return created;
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn += 1) await clock.advance(0);
}

async function pass(ms: number): Promise<void> {
  await settle();
  await clock.advance(ms);
  await settle();
}

const put = (generation: number, change: Partial<PodSpecInput> = {}) =>
  agent.pods.put(
    ID,
    PodSpec.parse(podSpec({ generation, image: { reference: IMAGE }, ...change })),
  );

const view = () => agent.pods.get(ID);
const containers = () => [...engine.containers.values()];
const running = () => containers().filter(({ status }) => status === 'running');

/** A pod of generation 1 that runs. */
async function launched(change: Partial<PodSpecInput> = {}) {
  await put(1, change);
  await settle();
  expect(view().phase).toBe('running');
  return view();
}

/** Fails every call of `method` with `kind` until it is mended; for generation 2's containers only if it starts one. */
function breakEngine(method: string, kind: EngineError['kind']): () => void {
  engine.hook = async (moment, called, detail) => {
    const isOld = called === 'startContainer' && detail === first;
    if (moment === 'before' && called === method && !isOld) {
      throw new EngineError(kind, `broken ${method}`);
    }
  };
  const first = view().container_id;
  return () => {
    engine.hook = async () => undefined;
  };
}

/** Holds every call of `method` back; what is returned lets them go. */
function holdEngine(method: string): () => void {
  const held: (() => void)[] = [];
  engine.hook = (moment, called) =>
    moment === 'before' && called === method
      ? new Promise<void>((resolve) => held.push(resolve))
      : Promise.resolve();
  return () => {
    engine.hook = async () => undefined;
    for (const release of held) release();
  };
}

const conditionOf = (type: string) => view().conditions.find((each) => each.type === type);

it('fetches the new image first, then replaces, and keeps the old container until the new has settled', async () => {
  const before = await launched();
  const release = holdEngine('pullImage');
  await put(2, { image: { reference: OTHER_IMAGE } });
  await settle();
  expect(view()).toMatchObject({
    ...{ phase: 'running', container_id: before.container_id, generation: 2 },
    ...{ observed_generation: 1, image: before.image, change: { stage: 'preparing' } },
    pull: { layers_total: 0 },
  });
  expect(conditionOf('GenerationReady')).toMatchObject({ status: false, reason: 'NotYet' });
  release();
  await settle();
  expect(view()).toMatchObject({ phase: 'running', change: { generation: 2, stage: 'settling' } });
  expect(containers().map(({ status }) => status)).toEqual(['exited', 'running']);
  await pass(PROVEN_MS);
  expect(view()).toMatchObject({ observed_generation: 2, change: null, ports: before.ports });
  expect(view().container_id).not.toBe(before.container_id);
  expect(containers()).toMatchObject([{ id: view().container_id, status: 'running' }]);
  expect(conditionOf('GenerationReady')).toMatchObject({ status: true });
});

it('never stops a pod for an image that cannot be had', async () => {
  const before = await launched();
  await put(2, { image: { reference: MISSING } });
  await pass(A_MINUTE_MS);
  const after = view();
  expect(after).toMatchObject({
    ...{ phase: 'running', container_id: before.container_id, restart_count: 0 },
    ...{ generation: 2, observed_generation: 1, image: before.image, reason: null },
    change: { generation: 2, stage: 'failed', reason: 'ImageNotFound' },
  });
  expect(conditionOf('GenerationReady')).toMatchObject({ status: false, reason: 'ImageNotFound' });
  // The refused generation is known: it is not tried again, and its number is used up.
  await put(2, { image: { reference: MISSING } });
  await settle();
  expect(view()).toEqual(after);
  await expect(put(2)).rejects.toMatchObject({ code: 'conflict' });
  await put(3, { image: { reference: OTHER_IMAGE } });
  await pass(PROVEN_MS);
  expect(view()).toMatchObject({ phase: 'running', observed_generation: 3, change: null });
});

it('tries a registry that is away for a while, and no longer', async () => {
  const before = await launched();
  const mend = breakEngine('pullImage', 'image_unreachable');
  await put(2, { image: { reference: OTHER_IMAGE } });
  await pass(1_500);
  expect(view().change).toMatchObject({ stage: 'preparing', reason: 'ImageUnreachable' });
  mend();
  await pass(A_MINUTE_MS);
  expect(view()).toMatchObject({ observed_generation: 2, change: null });
  breakEngine('resolveDigest', 'image_unreachable');
  await put(3, { image: { reference: MISSING } });
  await pass(10 * A_MINUTE_MS);
  expect(view()).toMatchObject({ phase: 'running', observed_generation: 2, ports: before.ports });
  expect(view().change).toMatchObject({ stage: 'failed', reason: 'ImageUnreachable' });
});

it('changes the variables of a pod whose registry is away', async () => {
  const { image } = await launched();
  breakEngine('pullImage', 'image_unreachable');
  await put(2, { environment: { A: 'b' } });
  await pass(PROVEN_MS);
  expect(view()).toMatchObject({ phase: 'running', observed_generation: 2, change: null, image });
  expect(containers()).toMatchObject([{ spec: { environment: { A: 'b' } } }]);
});

it.each<[string, EngineError['kind'], string]>([
  ['createContainer', 'refused', 'SpecRefused'],
  ['createContainer', 'deadline', 'DeadlineExceeded'],
  ['startContainer', 'refused', 'StartFailed'],
  ['startContainer', 'device', 'RuntimeMissing'],
])('brings the old container back when %s fails with %s', async (method, kind, reason) => {
  const before = await launched();
  breakEngine(method, kind);
  await put(2, { environment: { A: 'b' } });
  await pass(10 * A_MINUTE_MS);
  expect(view()).toMatchObject({
    ...{ phase: 'running', container_id: before.container_id, ports: before.ports },
    ...{ generation: 2, observed_generation: 1, restart_count: 0, last_exit: null },
    change: { generation: 2, stage: 'failed', reason },
  });
  expect(containers()).toMatchObject([{ id: before.container_id, status: 'running' }]);
});

it('brings the old container back when the new one ends before it has settled', async () => {
  const before = await launched();
  await put(2, { command: ['crash'] });
  await settle();
  engine.exit(view().container_id ?? '', 7);
  await settle();
  expect(view()).toMatchObject({
    ...{ phase: 'running', container_id: before.container_id, last_exit: null },
    change: { stage: 'failed', reason: 'ExitedNonZero', message: expect.stringContaining('7') },
  });
  expect(containers()).toHaveLength(1);
});

it('restarts a new container that ends after it has settled', async () => {
  await launched();
  await put(2);
  await pass(PROVEN_MS);
  engine.exit(view().container_id ?? '', 7);
  await pass(A_MINUTE_MS);
  expect(view()).toMatchObject({ phase: 'running', observed_generation: 2, restart_count: 1 });
});

it.each([true, false])('holds a change to a login that worked, works again: %s', async (works) => {
  const ports = { internal_ports: [22] };
  login = () => true;
  const before = await launched(ports);
  login = (id) => id === before.container_id || works;
  await put(2, ports);
  await pass(PROVEN_MS);
  if (!works) {
    expect(view().change).toMatchObject({ stage: 'settling' });
    await pass(LOGIN_WAIT_MS);
    expect(view().change).toMatchObject({ stage: 'failed', reason: 'StartFailed' });
    expect(view().change?.message).toContain('no shell');
  }
  expect(view()).toMatchObject({ phase: 'running', observed_generation: works ? 2 : 1 });
});

it('keeps host ports, leases new ones, and gives up old ones and GPUs only at the end', async () => {
  const [one = '', two = ''] = GPUS;
  const before = await launched({ internal_ports: [80, 81], gpu_uuids: [one] });
  const wanted = { internal_ports: [81, 82], gpu_uuids: [two] };
  await put(2, wanted);
  await settle();
  const { leases, gpuLeases } = agent.core;
  expect(leases.heldBy('port', ID).map(({ slot }) => slot)).toEqual(['80', '81', '82']);
  expect(gpuLeases.uuidsOf(ID)).toEqual([one, two]);
  await pass(PROVEN_MS);
  expect(view().ports).toEqual({ '81': before.ports['81'], '82': 20_002 });
  expect(leases.heldBy('port', ID).map(({ slot }) => slot)).toEqual(['81', '82']);
  expect(gpuLeases.uuidsOf(ID)).toEqual([two]);
});

it('gives up the new ports and GPUs of a change that failed', async () => {
  const [one = '', two = ''] = GPUS;
  const change = { internal_ports: [80, 81], gpu_uuids: [one] };
  const before = await launched(change);
  await put(2, { internal_ports: [81, 82], gpu_uuids: [two], image: { reference: MISSING } });
  await settle();
  expect(view()).toMatchObject({ ports: before.ports, gpu_uuids: [one] });
  expect(agent.core.leases.heldBy('port', ID).map(({ slot }) => slot)).toEqual(['80', '81']);
  expect(agent.core.gpuLeases.uuidsOf(ID)).toEqual([one]);
});

it('takes a still newer generation instead of one whose image is being fetched', async () => {
  const before = await launched();
  const release = holdEngine('pullImage');
  await put(2, { image: { reference: OTHER_IMAGE }, internal_ports: [99] });
  await settle();
  await put(3, { environment: { A: 'b' } });
  release();
  await pass(PROVEN_MS);
  expect(view()).toMatchObject({ observed_generation: 3, change: null, ports: before.ports });
  expect(containers()).toMatchObject([{ spec: { environment: { A: 'b' } } }]);
});

it('returns to the last one that had settled when a newer one follows one on trial', async () => {
  const before = await launched();
  await put(2, { environment: { TWO: '2' } });
  await settle();
  await put(3, { environment: { THREE: '3' } });
  await settle();
  expect(running()).toMatchObject([{ spec: { environment: { THREE: '3' } } }]);
  expect(containers()).toHaveLength(2);
  engine.exit(view().container_id ?? '', 1);
  await settle();
  expect(view()).toMatchObject({ container_id: before.container_id, change: { generation: 3 } });
  expect(running()).toHaveLength(1);
});

it('keeps a newer generation in mind while the one before it fails its trial', async () => {
  await launched();
  await put(2);
  await settle();
  const release = holdEngine('pullImage');
  await put(3, { image: { reference: OTHER_IMAGE } });
  await settle();
  engine.exit(view().container_id ?? '', 1);
  await settle();
  expect(view()).toMatchObject({ observed_generation: 1, change: { stage: 'preparing' } });
  release();
  await pass(PROVEN_MS);
  expect(view()).toMatchObject({ observed_generation: 3, change: null });
});

it.each(['preparing', 'replacing', 'settling'] as const)(
  'removes all of a pod while %s',
  async (stage) => {
    await launched({ gpu_uuids: GPUS });
    const release = holdEngine(stage === 'preparing' ? 'pullImage' : 'createContainer');
    await put(2, { image: { reference: OTHER_IMAGE }, internal_ports: [80, 81] });
    await settle();
    if (stage === 'settling') release();
    await settle();
    expect(view().change).toMatchObject({ stage });
    agent.pods.remove(ID);
    await settle();
    release();
    await pass(A_MINUTE_MS);
    expect(view()).toMatchObject({ phase: 'removed', change: null });
    expect(containers()).toEqual([]);
    expect(agent.core.leases.heldBy('port', ID)).toEqual([]);
    expect(agent.core.gpuLeases.uuidsOf(ID)).toEqual([]);
  },
);

it('looks after the old container while the new image is fetched', async () => {
  const before = await launched();
  const release = holdEngine('pullImage');
  await put(2, { image: { reference: OTHER_IMAGE } });
  await settle();
  engine.exit(before.container_id ?? '', 1);
  await pass(A_MINUTE_MS);
  expect(view()).toMatchObject({ phase: 'running', restart_count: 1, change: { generation: 2 } });
  agent.pods.reboot(ID, 1);
  await settle();
  expect(view()).toMatchObject({ phase: 'running', reboots_done: 1, observed_generation: 1 });
  release();
  await pass(PROVEN_MS);
  expect(view()).toMatchObject({ observed_generation: 2, change: null });
});

it('answers a reboot by the change under way', async () => {
  await launched();
  await put(2);
  await settle();
  const startedMs = running()[0]?.startedMs;
  expect(agent.pods.reboot(ID, 1)).toMatchObject({ reboots_requested: 1, reboots_done: 1 });
  await pass(PROVEN_MS);
  expect(running()).toMatchObject([{ startedMs }]);
  expect(view()).toMatchObject({ observed_generation: 2, reboots_done: 1 });
});

it('goes on after the engine was away during a change', async () => {
  await launched();
  const release = holdEngine('pullImage');
  await put(2, { image: { reference: OTHER_IMAGE } });
  await settle();
  engine.setAway(true);
  release();
  await pass(A_MINUTE_MS);
  expect(view()).toMatchObject({ phase: 'running', change: { stage: 'preparing' } });
  engine.setAway(false);
  await pass(A_MINUTE_MS);
  expect(view()).toMatchObject({ observed_generation: 2, change: null });
});

it('goes on with a change that a reboot of the host cut off', async () => {
  await launched();
  await put(2, { environment: { A: 'b' } });
  await settle();
  expect(view().change).toMatchObject({ stage: 'settling' });
  await agent.stop();
  for (const { id } of running()) engine.exit(id, 137);
  await clock.advance(10 * A_MINUTE_MS);
  agent = boot(store, 'another boot');
  await pass(PROVEN_MS);
  expect(view()).toMatchObject({
    ...{ phase: 'running', observed_generation: 2, change: null },
    last_exit: { reason: 'HostReboot' },
  });
  expect(containers()).toMatchObject([{ spec: { environment: { A: 'b' } } }]);
});

it('stops a new container that fills the disk and returns to the old one', async () => {
  const limits = { cpu_cores: 1, memory_bytes: 2 ** 26, shm_bytes: 0, pids: 64 };
  const before = await launched({ limits });
  await put(2, { limits: { ...limits, disk_bytes: 2 ** 24 } });
  await settle();
  engine.diskBytes.set(view().container_id ?? '', 2 ** 25);
  await agent.core.diskWatch.runOnce();
  await pass(10_000);
  expect(view()).toMatchObject({
    ...{ phase: 'running', container_id: before.container_id },
    change: { stage: 'failed', reason: 'DiskQuotaExceeded' },
  });
});

it('replaces what was stopped for its disk without a way back', async () => {
  const limits = { cpu_cores: 1, memory_bytes: 2 ** 26, shm_bytes: 0, pids: 64 };
  const before = await launched({ limits: { ...limits, disk_bytes: 2 ** 24 } });
  const release = holdEngine('pullImage');
  await put(2, { image: { reference: OTHER_IMAGE }, limits });
  await settle();
  engine.diskBytes.set(before.container_id ?? '', 2 ** 25);
  await agent.core.diskWatch.runOnce();
  await settle();
  expect(view()).toMatchObject({ phase: 'failed', reason: 'DiskQuotaExceeded' });
  release();
  await settle();
  expect(view()).toMatchObject({ phase: 'running', observed_generation: 2, change: null });
  expect(containers()).toHaveLength(1);
});

it('counts newer keys at once and keeps them over a roll-back', async () => {
  const ports = { internal_ports: [22] };
  await launched({ ...ports, ssh_public_keys: ['ssh-ed25519 one'] });
  await put(2, { ...ports, ssh_public_keys: ['ssh-ed25519 two'], image: { reference: MISSING } });
  await settle();
  expect(view()).toMatchObject({
    observed_generation: 1,
    ssh_keys_hash: sshKeysHash(['ssh-ed25519 two']),
  });
  await put(3, { ...ports, ssh_public_keys: ['ssh-ed25519 three'] });
  await settle();
  agent.pods.putSshKeys(ID, ['ssh-ed25519 four']);
  engine.exit(view().container_id ?? '', 1);
  await settle();
  expect(view()).toMatchObject({
    observed_generation: 1,
    ssh_keys_hash: sshKeysHash(['ssh-ed25519 four']),
  });
  expect(told.pods[0]?.authorized_keys).toEqual(['ssh-ed25519 four']);
});
