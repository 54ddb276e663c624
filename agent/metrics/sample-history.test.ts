import { expect, it } from 'vitest';
import {
  MAX_PAGE_TICKS,
  MAX_RETAINED_TICKS,
  SampleHistory,
} from '#shared/api/agent/metric-history.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createTestAgent, fakeGpus, podSpec } from '../../test/fakes/agents/test-agent.ts';
import { createFakeEngine } from '../../test/fakes/engine/fake-engine.ts';
import { IDLE_USAGE } from '../../test/fakes/engine/fake-engine-containers.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { createSimulatedDriver } from '../gpu/simulated-gpus.ts';
import { pauseToNextTick } from './sample-history.ts';
import { sampledGpus } from './sample-row.ts';

const IMAGE = 'registry.example/one:1';
const EXECUTOR_ID = '3f9f41a6-0001-4000-8000-000000000001';
const TICK_MS = 10_000;
const CORE_NANOS = 1e9;

/** Starts an agent with two cards; its pod holds both, the second first. */
async function setUp() {
  const clock = createManualClock();
  const engine = createFakeEngine(clock);
  engine.addImage(IMAGE, `sha256:${'a1'.repeat(32)}`);
  const simulated = createSimulatedDriver(EXECUTOR_ID, ['NVIDIA L4', 'NVIDIA L4']);
  const cards = await simulated.read();
  const uuids = cards.devices.map(({ uuid }) => uuid).toReversed();
  const state = { reading: cards };
  const agent = createTestAgent({
    engine,
    clock,
    executorId: EXECUTOR_ID,
    gpus: fakeGpus(uuids),
    gpuDriver: { ...simulated, read: async () => state.reading },
    hostProbe: {
      read: () => Promise.reject(new Error('this reading was not expected')),
      sample: async (path) => ({
        cpu: { model: 'x', cores: 8, utilization_percent: 12.5, load_1m: 0.75 },
        memory: { total_kib: 4, available_kib: 1 },
        disk: { path, total_kib: 5, free_kib: 2 },
        network: { rx_bytes_per_second: 5, tx_bytes_per_second: null },
        disks: { rx_bytes_per_second: 6, tx_bytes_per_second: 7 },
      }),
    },
  });
  const id = systemRandom.uuid();
  const inject = (method: 'GET' | 'PUT' | 'DELETE', url: string, payload?: object) =>
    agent.server.inject({ method, url, ...(payload === undefined ? {} : { payload }) });
  await inject('PUT', `/v1/pods/${id}`, podSpec({ image: { reference: IMAGE }, gpu_uuids: uuids }));
  await eventually('the pod', () => agent.pods.get(id).phase === 'running');
  const containerId = agent.pods.get(id).container_id ?? '';
  let cpuNanos = 0;
  return {
    clock,
    id,
    uuids,
    cards,
    state,
    inject,
    agent,
    /** Samples `count` times, at the beginning of each interval. The pod uses a quarter of a core. */
    async sample(count = 1): Promise<void> {
      for (let index = 0; index < count; index += 1) {
        cpuNanos += 2.5 * CORE_NANOS;
        const network = { receivedBytes: cpuNanos / 1e6, sentBytes: 0 };
        const blockIo = { readBytes: 0, writtenBytes: cpuNanos / 1e5 };
        const memory = { memoryBytes: 2 ** 24, memoryWithFilesBytes: 2 ** 24 };
        engine.usages.set(containerId, { ...IDLE_USAGE, cpuNanos, network, blockIo, ...memory });
        await agent.samples.runOnce();
        agent.sampleHistory.record();
        await clock.advance(TICK_MS);
      }
    },
    history: async (query = '') =>
      SampleHistory.parse((await inject('GET', `/v1/metrics/history${query}`)).json()),
  };
}

it('returns rows of host and pod, with rates since the previous tick and the GPUs in the pod’s order', async () => {
  const { sample, history, id, uuids, state, cards } = await setUp();
  const [first, second] = cards.devices;
  if (first === undefined || second === undefined) throw new Error('two cards');
  state.reading = {
    ...cards,
    devices: [
      { ...first, utilization_percent: 11 },
      { ...second, utilization_percent: 22 },
    ],
  };
  await sample(2);
  const { newest, more, series } = await history();
  expect([more, newest?.age_ms]).toEqual([false, TICK_MS]);
  const [host, pod] = series;
  expect(host).toMatchObject({ pod_id: null, gpus: uuids.toReversed() });
  expect(host?.rows[1]?.values.slice(0, 8)).toEqual([12.5, 75, 5, null, 3, 6, 7, 11]);
  expect(pod).toMatchObject({ pod_id: id, gpus: uuids });
  expect(pod?.rows.map(({ tick }) => tick)).toEqual([(newest?.tick ?? 0) - 1, newest?.tick]);
  // A quarter of a core of half a core; the first tick has no rates.
  expect(pod?.rows[0]?.values.slice(0, 4)).toEqual([null, 25, null, null]);
  const idle = [0, 7.2, 30, null, null];
  const gpus = [22, ...idle, 11, ...idle];
  expect(pod?.rows[1]?.values).toEqual([50, 25, 250, 0, null, 0, 2_500, ...gpus]);
});

it('reports null figures for a card that is missing or has old values, and retains its position', async () => {
  const { sample, history, state, cards } = await setUp();
  state.reading = { ...cards, devices: cards.devices.slice(0, 1) };
  await sample();
  state.reading = { ...cards, ageMs: 5_000 };
  await sample();
  const pod = (await history()).series.find(({ pod_id: podId }) => podId !== null);
  const percents = pod?.rows.map(({ values }) => [values[7], values[13]]);
  expect(percents).toEqual([
    [null, 0],
    [null, null],
  ]);
});

it('pages through an hour of samples, including the samples of a removed pod', async () => {
  const { sample, history, id, inject, agent } = await setUp();
  await sample(10);
  await inject('DELETE', `/v1/pods/${id}`);
  await eventually('the end', () => agent.pods.get(id).phase === 'removed');
  await sample(MAX_RETAINED_TICKS - 5);
  let page = await history();
  const { epoch } = page;
  expect(page.series.map(({ pod_id: podId, rows }) => [podId, rows.length])).toEqual([
    [null, MAX_PAGE_TICKS],
    [id, 5],
  ]);
  let count = page.series[0]?.rows.length ?? 0;
  while (page.more) {
    page = await history(`?epoch=${epoch}&after=${page.series[0]?.rows.at(-1)?.tick}`);
    count += page.series[0]?.rows.length ?? 0;
  }
  expect(count).toBe(MAX_RETAINED_TICKS);
  expect((await history(`?epoch=${epoch}&after=${page.newest?.tick}`)).series).toEqual([]);
  const ofOther = await history(`?epoch=${systemRandom.uuid()}&after=${page.newest?.tick}`);
  expect(ofOther.series[0]?.rows).toHaveLength(MAX_PAGE_TICKS);
});

it('distinguishes clocks reduced by heat from clocks reduced by power, with the field names of all drivers', async () => {
  const { cards, uuids } = await setUp();
  const throttleOf = (field: string, mask: string) => {
    const values = new Map([[`${field}.active`, mask]]);
    const reading = { ...cards, cards: cards.cards.map((card) => ({ ...card, values })) };
    const [gpu] = sampledGpus(uuids.slice(0, 1), reading);
    return [gpu?.thermal_throttle_percent, gpu?.power_throttle_percent];
  };
  const event = (mask: string) => throttleOf('clocks_event_reasons', mask);
  expect(event('0x0000000000000001')).toEqual([0, 0]);
  expect(event('0x0000000000000004')).toEqual([0, 100]);
  expect(event('0x0000000000000020')).toEqual([100, 0]);
  expect(event('0x0000000000000048')).toEqual([100, 0]);
  expect(event('0x0000000000000088')).toEqual([0, 100]);
  expect(event('0x0000000000000064')).toEqual([100, 100]);
  expect(throttleOf('clocks_throttle_reasons', '0x0000000000000008')).toEqual([100, 0]);
  expect(event('[N/A]')).toEqual([null, null]);
});

it('leaves out no tick, however long a sample takes', () => {
  const ticks = new Set<number>();
  let atMs = 3_700;
  for (const tookMs of [0, 250, 9_900, -0.7, 40, 5_000, 1_200]) {
    ticks.add(Math.round(atMs / TICK_MS));
    atMs += tookMs;
    atMs += pauseToNextTick(atMs);
  }
  expect([...ticks]).toEqual([0, 1, 2, 3, 4, 5, 6]);
});
