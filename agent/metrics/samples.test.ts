import { expect, it } from 'vitest';
import { MAX_AGE_MS } from '#shared/api/agent/bounds.ts';
import { HostMetrics, MAX_HISTORY, PodMetrics } from '#shared/api/agent/metrics.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createTestAgent, fakeGpus, podSpec } from '../../test/fakes/agents/test-agent.ts';
import { createFakeEngine } from '../../test/fakes/engine/fake-engine.ts';
import { IDLE_USAGE } from '../../test/fakes/engine/fake-engine-containers.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import {
  type ContainerUsage,
  EngineError,
  type EngineErrorKind,
} from '../containers/engine/engine.ts';
import type { GpuReading } from '../gpu/gpu-driver.ts';
import { createSimulatedDriver } from '../gpu/simulated-gpus.ts';

const IMAGE = 'registry.example/one:1';
const EXECUTOR_ID = '3f9f41a6-0001-4000-8000-000000000001';
const SECOND_MS = 1_000;
const CORE_NANOS = 1e9;

const usage = (cpuNanos: number, memoryBytes: number): ContainerUsage => ({
  ...IDLE_USAGE,
  cpuNanos,
  memoryBytes,
  memoryWithFilesBytes: memoryBytes,
});

/** Starts an agent with two cards; its pod holds the second. */
async function setUp() {
  const clock = createManualClock();
  const engine = createFakeEngine(clock);
  engine.addImage(IMAGE, `sha256:${'a1'.repeat(32)}`);
  const simulated = createSimulatedDriver(EXECUTOR_ID, ['NVIDIA L4', 'NVIDIA L4']);
  const cards = await simulated.read();
  const uuids = cards.devices.map(({ uuid }) => uuid);
  const state = { reading: cards, hostAnswers: true, reads: 0 };
  const lines: { msg: string; detail?: string }[] = [];
  const log = createLog(
    { name: 'test-agent', level: 'info' },
    { write: (line) => void lines.push(JSON.parse(line)) },
  );
  const agent = createTestAgent({
    engine,
    clock,
    log,
    executorId: EXECUTOR_ID,
    gpus: fakeGpus(uuids),
    gpuDriver: {
      ...simulated,
      read: async () => {
        state.reads += 1;
        return state.reading;
      },
    },
    hostProbe: {
      read: () => Promise.reject(new Error('not asked')),
      sample: async (path) => {
        if (!state.hostAnswers) throw new Error('a dead mount');
        return {
          cpu: { model: 'x', cores: 8, utilization_percent: 12.5, load_1m: 0.75 },
          memory: { total_kib: 2, available_kib: 1 },
          disk: { path, total_kib: 2, free_kib: 1 },
          network: { rx_bytes_per_second: 5, tx_bytes_per_second: null },
          disks: { rx_bytes_per_second: 6, tx_bytes_per_second: 7 },
        };
      },
    },
  });
  const id = systemRandom.uuid();
  const payload = podSpec({ image: { reference: IMAGE }, gpu_uuids: uuids.slice(1) });
  const inject = (method: 'GET' | 'PUT' | 'DELETE', url: string, body?: object) =>
    agent.server.inject({ method, url, ...(body === undefined ? {} : { payload: body }) });
  await inject('PUT', `/v1/pods/${id}`, payload);
  await eventually('the pod', () => agent.pods.get(id).phase === 'running');
  const containerId = agent.pods.get(id).container_id ?? '';
  return {
    agent,
    engine,
    clock,
    state,
    lines,
    inject,
    id,
    containerId,
    uuids,
    sample: () => agent.samples.runOnce(),
    pod: async () => PodMetrics.parse((await inject('GET', `/v1/pods/${id}/metrics`)).json()),
    host: async () => HostMetrics.parse((await inject('GET', '/v1/metrics/host')).json()),
    /** Reads the simulated cards, whose load follows their pod. */
    async readCards() {
      state.reading = await simulated.read();
    },
    /** Sets the second card for the next sample. */
    show(change: Partial<GpuReading['devices'][number]>, ageMs = 0): void {
      const devices = cards.devices.map((device, index) =>
        index === 1 ? { ...device, ...change } : device,
      );
      state.reading = { ...cards, devices, ageMs };
    },
  };
}

it('returns samples with their age, and measures nothing on request', async () => {
  const { sample, host, clock, state, uuids } = await setUp();
  await sample();
  const { reads } = state;
  await clock.advance(3_000);
  expect(await host()).toMatchObject({
    age_ms: 3_000,
    simulated: true,
    cpu: { cores: 8, utilization_percent: 12.5, load_1m: 0.75 },
    disk: { path: '/var/lib/docker' },
    network: { rx_bytes_per_second: 5, tx_bytes_per_second: null },
    gpus: uuids.map((uuid) => ({ uuid, utilization_percent: 0, graphics_clock_mhz: 210 })),
    gpu_error: null,
  });
  state.hostAnswers = false;
  await clock.advance(10_000);
  await sample();
  expect(await host()).toMatchObject({ age_ms: 13_000, cpu: { cores: 8 } });
  expect(state.reads).toBe(reads + 1);
});

it("returns a pod's GPUs, processors and memory", async () => {
  const { sample, pod, clock, engine, containerId, show, uuids } = await setUp();
  expect(await pod()).toMatchObject({ age_ms: null, gpus: [], history: [] });
  engine.usages.set(containerId, usage(CORE_NANOS, 4_096));
  show({ utilization_percent: 80, memory_used_mib: 11_517 });
  await sample();
  expect((await pod()).cpu).toEqual({ used_cores: null, limit_cores: 0.5 });
  await clock.advance(10 * SECOND_MS);
  engine.usages.set(containerId, usage(6 * CORE_NANOS, 8_192));
  await sample();
  expect(await pod()).toMatchObject({
    age_ms: 0,
    simulated: true,
    interval_seconds: 10,
    cpu: { used_cores: 0.5, limit_cores: 0.5 },
    memory: { used_bytes: 8_192, limit_bytes: 2 ** 26 },
    gpus: [{ uuid: uuids[1], utilization_percent: 80 }],
    history: [
      { age_ms: 10_000, gpu_percent: 80, gpu_memory_percent: 50 },
      { age_ms: 0, gpu_percent: 80, gpu_memory_percent: 50 },
    ],
  });
});

it("gives simulated cards the load of their pod, from the next reading until the pod's end", async () => {
  const { sample, pod, host, clock, engine, containerId, readCards, inject, id } = await setUp();
  async function work(cores: number): Promise<void> {
    const { cpuNanos } = engine.usages.get(containerId) ?? IDLE_USAGE;
    engine.usages.set(containerId, usage(cpuNanos + cores * 10 * CORE_NANOS, 4_096));
    await readCards();
    await clock.advance(10 * SECOND_MS);
    await sample();
  }
  await work(0);
  await work(0.3);
  await work(0.05);
  const [card] = (await pod()).gpus;
  expect(card).toMatchObject({ utilization_percent: 50, temperature_c: 37 });
  await work(0);
  expect((await pod()).history.map(({ gpu_percent }) => gpu_percent)).toEqual([0, 0, 50, 0]);
  await work(0.5);
  await inject('DELETE', `/v1/pods/${id}`);
  await eventually('the removal', async () => {
    await clock.advance(SECOND_MS);
    return (await inject('GET', `/v1/pods/${id}/metrics`)).statusCode === 404;
  });
  await sample();
  await readCards();
  await sample();
  expect((await host()).gpus.map((gpu) => gpu.utilization_percent)).toEqual([0, 0]);
});

it('retains sixty history points, none from old values, with null for unknown values', async () => {
  const { sample, pod, clock, show } = await setUp();
  for (let n = 0; n < MAX_HISTORY + 5; n += 1) {
    show({ utilization_percent: n });
    await sample();
    await clock.advance(10 * SECOND_MS);
  }
  show({ utilization_percent: 99 }, 5_000);
  await sample();
  const { history } = await pod();
  expect(history).toHaveLength(MAX_HISTORY);
  expect([history[0]?.gpu_percent, history.at(-1)?.gpu_percent]).toEqual([5, MAX_HISTORY + 4]);
  show({ utilization_percent: null, memory_used_mib: null });
  await sample();
  expect((await pod()).history.at(-1)).toMatchObject({
    gpu_percent: null,
    gpu_memory_percent: null,
  });
});

it('continues to sample GPUs while the engine does not answer, and drops a removed pod', async () => {
  const { agent, sample, pod, clock, engine, containerId, id, inject } = await setUp();
  engine.usages.set(containerId, usage(CORE_NANOS, 4_096));
  await sample();
  engine.setAway(true);
  await clock.advance(10 * SECOND_MS);
  await sample();
  expect(await pod()).toMatchObject({ age_ms: 0, memory: { used_bytes: null }, gpus: [{}] });
  engine.setAway(false);
  await inject('DELETE', `/v1/pods/${id}`);
  await eventually('the end', () => agent.pods.get(id).phase === 'removed');
  await sample();
  const gone = await inject('GET', `/v1/pods/${id}/metrics`);
  expect([gone.statusCode, gone.json().error.code]).toEqual([404, 'pod_not_found']);
});

it('logs the first failure to read the GPUs and the recovery', async () => {
  const { sample, state, lines } = await setUp();
  const good = state.reading;
  for (const reading of [good, { ...good, error: 'x'.repeat(9_000), ageMs: 1 }]) {
    state.reading = reading;
    await sample();
    await sample();
  }
  state.reading = good;
  await sample();
  await sample();
  expect(lines.filter(({ msg }) => /^GPUs (?:cannot|readable)/.test(msg))).toMatchObject([
    { msg: 'GPUs cannot be read', detail: 'x'.repeat(500) },
    { msg: 'GPUs readable again' },
  ]);
});

it('limits the reported age to a day', async () => {
  const { sample, host, pod, clock, state } = await setUp();
  await sample();
  state.hostAnswers = false;
  await clock.advance(2 * MAX_AGE_MS);
  expect(await host()).toMatchObject({ age_ms: MAX_AGE_MS });
  expect(await pod()).toMatchObject({ age_ms: MAX_AGE_MS, history: [{ age_ms: MAX_AGE_MS }] });
});

it('continues to sample the host while the engine does not answer, with the cached data folder', async () => {
  const { sample, host, clock, engine } = await setUp();
  engine.setAway(true);
  await sample();
  await expect(host()).rejects.toThrow();
  engine.setAway(false);
  await sample();
  engine.setAway(true);
  await clock.advance(10 * SECOND_MS);
  await sample();
  expect(await host()).toMatchObject({ age_ms: 0, disk: { path: '/var/lib/docker' } });
});

it('samples the other pods if the engine fails for one pod, and no pod if the engine does not answer', async () => {
  const { agent, sample, pod, engine, inject } = await setUp();
  const other = systemRandom.uuid();
  await inject('PUT', `/v1/pods/${other}`, podSpec({ image: { reference: IMAGE } }));
  await eventually('the other pod', () => agent.pods.get(other).phase === 'running');
  const containers = [...engine.containers.keys()];
  for (const id of containers) engine.usages.set(id, usage(1, 4_096));
  const ask = async (id: string) =>
    PodMetrics.parse((await inject('GET', `/v1/pods/${id}/metrics`)).json()).memory.used_bytes;
  const failWith = (kind: EngineErrorKind, isFor: (call: number) => boolean) => {
    let calls = 0;
    engine.hook = async (moment, method) => {
      if (method !== 'containerUsage' || moment !== 'before') return;
      calls += 1;
      if (isFor(calls)) throw new EngineError(kind, 'requested by the test');
    };
  };
  const known = async () => {
    await sample();
    return [(await pod()).memory.used_bytes, await ask(other)].filter((bytes) => bytes !== null);
  };
  failWith('conflict', (call) => call === 1);
  expect(await known()).toEqual([4_096]);
  failWith('unavailable', () => true);
  expect(await known()).toEqual([]);
  failWith('deadline', () => true);
  expect(await known()).toEqual([]);
});

it('rejects requests before the first sample and for unknown pods', async () => {
  const { inject } = await setUp();
  const answers = ['/v1/metrics/host', '/v1/pods/x/metrics', `/v1/pods/${EXECUTOR_ID}/metrics`];
  const codes = answers.map(async (url) => (await inject('GET', url)).json().error.code);
  expect(await Promise.all(codes)).toEqual([
    'upstream_unavailable',
    'validation_error',
    'pod_not_found',
  ]);
});
