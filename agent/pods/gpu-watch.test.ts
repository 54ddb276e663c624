import { beforeEach, expect, it } from 'vitest';
import { type PodCondition, PodSpec } from '#shared/api/agent/pod.ts';
import { createLog } from '#shared/runtime/log.ts';
import { podSpec } from '../../test/fakes/agents/test-agent.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { H100_A } from '../../test/fixtures/nvidia-smi.ts';
import { openDatabase } from '../database/database.ts';
import { createGpuHealthStore } from '../gpu/gpu-health.store.ts';
import { createGpuProbe, GPU_PROBE_INTERVAL_MS } from './gpu-probe.job.ts';
import { createGpuWatch } from './gpu-watch.job.ts';
import { createPodStore } from './pod.store.ts';
import { createPodRecords } from './pod-records.ts';
import { newPodRow } from './pod-row.ts';

const PCI = '00000000:1B:00.0';
const SEEN = `GPU 0: NVIDIA H100 (UUID: ${H100_A})\n`;
const LOST = { exitCode: 255, stdout: 'Failed to initialize NVML: Unknown Error\n' };

/** Creates a running pod on one card, and sets the result of a probe in it. */
function setUp() {
  const clock = createManualClock();
  const database = openDatabase(':memory:');
  const store = createGpuHealthStore(database);
  const pods = createPodStore(database);
  const startedMs = clock.now();
  const content = {
    spec_json: JSON.stringify(PodSpec.parse(podSpec({ gpu_uuids: [H100_A] }))),
    spec_hash: 'hash',
  };
  pods.put({ ...newPodRow('pod', 1, content, startedMs), phase: 'running', container_id: 'c' });
  const records = createPodRecords({ database, clock, onWrite: () => undefined });
  const state = {
    answer: async (): Promise<{ exitCode: number; stdout: string } | null> => ({
      exitCode: 0,
      stdout: SEEN,
    }),
    container: { status: 'running' as 'running' | 'exited', startedMs, finishedMs: 0 },
  };
  const device = { uuid: H100_A, pci_bus_id: PCI, mig: null };
  const driver = {
    kind: 'nvidia' as const,
    read: async () => ({ devices: [device] }),
  };
  const gpuLeases = { leasedUuids: () => [H100_A] };
  const log = createLog({ name: 'test', level: 'silent' });
  const common = { records, clock, log } as const;
  const looks: string[] = [];
  const probe = createGpuProbe({
    ...common,
    driver,
    runInContainer: async (id, argv) => {
      looks.push([id, ...argv].join(' '));
      return state.answer();
    },
  });
  const watch = createGpuWatch({
    ...common,
    executorId: 'e',
    driver,
    gpuLeases,
    store,
    probe,
    engine: {
      listContainers: async () => [{ id: 'c', ...state.container }],
    },
  });
  const xid = (at_ms: number, pci = '0000:1b:00', code = 79) =>
    store.addXid({ boot_id: 'b', sequence: at_ms, at_ms, pci, code, pod_id: null });
  const condition = (): PodCondition | null => watch.conditionOf('pod');
  const look = async () => {
    await clock.advance(GPU_PROBE_INTERVAL_MS);
    await probe.runOnce();
  };
  return { clock, store, pods, records, state, looks, watch, xid, condition, look, startedMs };
}

let pod: ReturnType<typeof setUp>;
beforeEach(async () => {
  pod = setUp();
  await pod.watch.runOnce();
});

it('reports healthy GPUs, and runs nvidia-smi in the pod', async () => {
  await pod.look();
  expect(pod.condition()).toMatchObject({ type: 'GpuHealthy', status: true, reason: 'Ok' });
  expect(pod.looks).toEqual(['c nvidia-smi -L']);
});

it('counts Xid errors of the pod’s card between start and finish only', async () => {
  const { startedMs, state, clock } = pod;
  await clock.advance(60_000);
  pod.xid(startedMs - 5_000);
  pod.xid(startedMs + 1_000, '0000:43:00');
  pod.xid(startedMs + 2_000, '0000:1b:00', 13);
  expect(pod.condition()).toMatchObject({ status: true });
  pod.xid(startedMs + 3_000);
  expect(pod.condition()).toMatchObject({
    status: false,
    reason: 'GpuUnhealthy',
    last_transition_ms: startedMs + 3_000,
  });
  // After a restart of the container, earlier errors do not count.
  state.container = { status: 'running', startedMs: startedMs + 10_000, finishedMs: 0 };
  await pod.watch.runOnce();
  expect(pod.condition()).toMatchObject({ status: true });
  // The container ended before the next error.
  state.container = {
    status: 'exited',
    startedMs: startedMs + 10_000,
    finishedMs: startedMs + 20_000,
  };
  await pod.watch.runOnce();
  pod.xid(startedMs + 21_000);
  expect(pod.condition()).toMatchObject({ status: true });
  pod.xid(startedMs + 19_000);
  expect(pod.condition()).toMatchObject({ status: false });
});

it('reports a lasting fault to the pod on the card', () => {
  const cordon = { subject: H100_A, source: 'inventory', reason: 'RowRemapPending' } as const;
  pod.store.putCordon({ ...cordon, message: 'rows wait', since_ms: 7 });
  expect(pod.condition()).toMatchObject({
    status: false,
    reason: 'GpuUnhealthy',
    last_transition_ms: 7,
    message: `GPU ${H100_A}: RowRemapPending: rows wait`,
  });
  pod.store.dropCordon(cordon);
  expect(pod.condition()).toMatchObject({ status: true });
});

it('reports a GPU as lost after three probes without it', async () => {
  pod.state.answer = async () => LOST;
  await pod.look();
  const firstMs = pod.clock.now();
  await pod.look();
  expect(pod.condition()).toMatchObject({ status: true });
  await pod.look();
  expect(pod.condition()).toMatchObject({
    status: false,
    reason: 'GpuLostInContainer',
    last_transition_ms: firstMs,
  });
  expect(pod.condition()?.message).toMatch(/reboot the pod/);
  pod.state.answer = async () => ({ exitCode: 0, stdout: SEEN });
  await pod.look();
  expect(pod.condition()).toMatchObject({ status: true });
});

it('resets the count of failed probes when the pod is restarted', async () => {
  pod.state.answer = async () => LOST;
  for (const _ of [1, 2, 3]) await pod.look();
  pod.records.change('pod', () => ({ phase: 'rebooting' }));
  await pod.clock.advance(1);
  pod.records.change('pod', () => ({ phase: 'running' }));
  expect(pod.condition()).toMatchObject({ status: true });
  await pod.look();
  expect(pod.condition()).toMatchObject({ status: true });
});

it.each<[string, () => Promise<{ exitCode: number; stdout: string } | null>]>([
  ['an image that cannot run nvidia-smi', async () => ({ exitCode: 127, stdout: 'not found' })],
  ['an engine that does not answer', () => Promise.reject(new Error('unavailable'))],
])('does not treat %s as a lost GPU', async (_, answer) => {
  pod.state.answer = answer;
  for (const __ of [1, 2, 3, 4]) await pod.look();
  expect(pod.condition()).toMatchObject({ status: true });
});

it('treats a hanging nvidia-smi, or one that lists another card, as a lost GPU', async () => {
  pod.state.answer = async () => null;
  await pod.look();
  pod.state.answer = async () => ({ exitCode: 0, stdout: SEEN.replace('GPU-51', 'GPU-99') });
  await pod.look();
  await pod.look();
  expect(pod.condition()).toMatchObject({ reason: 'GpuLostInContainer' });
});
