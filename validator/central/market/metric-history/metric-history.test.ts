import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { createFakeSamples, type FakeSamples } from '../../../../test/fakes/agents/fake-samples.ts';
import { testSigner } from '../../../../test/fakes/scenes/market-fixture.ts';
import { createPodScene, type PodScene } from '../../../../test/fakes/scenes/pod-scene.ts';
import { createCollector } from './collect.ts';
import { claimCollections } from './metric-history.store.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Number of ticks (of 10 seconds) in a minute. */
const PER_MINUTE = 6;
const PER_HOUR = 360;

let scene: PodScene;
let samples: FakeSamples;
let podId: string;
let gpu: string;
beforeEach(async () => {
  scene = await createPodScene();
  samples = createFakeSamples(scene.market.clock);
  scene.host.sampleHistory = samples.answer;
  podId = await scene.running();
  gpu = scene.host.specs.get(podId)?.gpu_uuids?.[0] ?? '';
  // The beginning of an hour, so that the first sample is at the beginning of an interval.
  await scene.market.clock.advance(HOUR_MS - (scene.market.clock.now() % HOUR_MS));
  samples.restart();
});
afterEach(() => scene.market.close());

const collect = () => scene.market.central.collectMetrics();
const history = async (query = '') =>
  (await scene.call('GET', `/pods/${podId}/metrics${query}`)).body;

/** Series of the host, and of the pod with one GPU at `percent`. */
const busy = (percent: number) => [
  { cpu_percent: 50, disk_used_kib: 1_000_000 },
  { podId, cpu_percent: percent, ram_percent: 20, gpus: { [gpu]: { gpu_percent: percent } } },
];
const busyFor = (count: number, percentAt: (index: number) => number) =>
  samples.run(count, (index) => busy(percentAt(index)));

/** Values of the entries that have samples. */
const measured = (values: (number | null)[]) => values.filter((value) => value !== null);

describe('the history of a pod', () => {
  it('has an entry for every 10 seconds of the last 15 minutes, up to the newest sample of the agent', async () => {
    await busyFor(30, (index) => index);
    await collect();
    await busyFor(3, () => 90);
    const body = await history();
    expect(body).toMatchObject({ pod_id: podId, resolution: 10, simulated: true, stale: false });
    expect([body.timestamps.length, body.samples.length]).toEqual([90, 90]);
    const expected = [...Array.from({ length: 30 }, (_, index) => index), 90, 90, 90];
    expect(body.gpu_utilization.avg.slice(-33)).toEqual(expected);
    expect(measured(body.gpu_utilization.avg)).toEqual(expected);
    expect(body.samples.slice(-34)).toEqual([0, ...expected.map(() => 1)]);
    expect(body.rx_bytes_per_second.avg.every((value: unknown) => value === null)).toBe(true);
    expect(body.gpus).toEqual([]);
  });

  it('aggregates minutes and ten minutes to minimum, mean and maximum', async () => {
    await busyFor(PER_HOUR, (index) => index % 60);
    await collect();
    const minutes = await history('?resolution=60');
    expect(minutes).toMatchObject({ resolution: 60 });
    expect(minutes.timestamps).toHaveLength(180);
    const { min, avg, max } = minutes.gpu_utilization;
    expect([min.at(-1), avg.at(-1), max.at(-1)]).toEqual([54, 57, 59]);
    expect(minutes.samples.at(-1)).toBe(PER_MINUTE);
    const tens = await history('?resolution=600&per_gpu=true');
    expect(tens.timestamps).toHaveLength(4_320);
    expect(measured(tens.cpu_utilization.avg)).toEqual([30, 30, 30, 30, 30, 30]);
    expect(tens.gpu_utilization.max.slice(-6)).toEqual([59, 59, 59, 59, 59, 59]);
    expect(tens.gpus).toMatchObject([{ index: 0, uuid: gpu }]);
    expect(tens.gpus[0].gpu_utilization).toEqual(tens.gpu_utilization.avg);
    expect(tens.samples.at(-1)).toBe(60);
  });

  it('selects the range, and the finest resolution that is retained since its start', async () => {
    await busyFor(PER_HOUR, () => 10);
    await collect();
    const nowMs = scene.market.clock.now();
    const at = (agoMs: number) => naiveUtc(nowMs - agoMs);
    const chosen = async (agoMs: number) => (await history(`?from=${at(agoMs)}`)).resolution;
    expect(await chosen(15 * MINUTE_MS)).toBe(10);
    expect(await chosen(16 * MINUTE_MS)).toBe(60);
    expect(await chosen(4 * HOUR_MS)).toBe(600);
    const part = await history(`?from=${at(50 * MINUTE_MS)}&to=${at(40 * MINUTE_MS)}`);
    expect(part.timestamps).toHaveLength(10);
    expect(part.timestamps[0]).toBe(at(50 * MINUTE_MS));
    expect(part.samples.every((count: number) => count === PER_MINUTE)).toBe(true);
    for (const query of [`?from=${at(0)}`, `?from=${at(1_000)}&to=${at(2_000)}`, '?resolution=7']) {
      const refused = await scene.call('GET', `/pods/${podId}/metrics${query}`);
      expect([refused.status, refused.body.validation_errors.length]).toEqual([422, 1]);
    }
  });

  it('has no gap after the central API was down for half an hour, but a gap after the agent was down', async () => {
    await busyFor(PER_HOUR / 2, () => 10);
    await collect();
    scene.host.sampleHistory = null;
    await busyFor(PER_HOUR / 2, () => 20);
    await collect();
    scene.host.sampleHistory = samples.answer;
    await scene.market.clock.advance(20 * MINUTE_MS);
    await collect();
    samples.restart();
    await busyFor(60, () => 30);
    await collect();
    const { samples: counts, cpu_utilization } = await history('?resolution=600');
    expect(counts.slice(-9)).toEqual([60, 60, 60, 60, 60, 60, 0, 0, 60]);
    expect(cpu_utilization.avg.slice(-9)).toEqual([10, 10, 10, 20, 20, 20, null, null, 30]);
  });

  it('counts late and repeated samples once', async () => {
    await busyFor(12, () => 40);
    await collect();
    await scene.market.clock.advance(5 * MINUTE_MS);
    // Loses its position, so that the agent sends everything again.
    await scene.market.ports.db.updateTable('metric_collections').set({ tick: 2 }).execute();
    await collect();
    const { samples: counts } = await history('?resolution=60');
    expect(counts.reduce((sum: number, count: number) => sum + count, 0)).toBe(12);
  });

  it('is stale while the node does not answer, and continues for 30 days after the end of the pod', async () => {
    await busyFor(60, () => 70);
    await collect();
    scene.host.up = false;
    await scene.market.clock.advance(6_000);
    expect(await history('?resolution=600')).toMatchObject({ stale: true });
    scene.host.up = true;
    await scene.remove(podId);
    await scene.later();
    await scene.market.clock.advance(29 * DAY_MS);
    await scene.market.central.sweepAccounts();
    const ended = await history('?resolution=600');
    expect(ended).toMatchObject({ stale: false });
    expect(measured(ended.gpu_utilization.avg)).toEqual([70]);
    await scene.market.clock.advance(2 * DAY_MS);
    await scene.market.central.sweepAccounts();
    expect(measured((await history('?resolution=600')).gpu_utilization.avg)).toEqual([]);
    const rows = await scene.market.ports.db
      .selectFrom('metric_history')
      .select('owner_id')
      .execute();
    expect(rows).toEqual([]);
  });

  it('is empty and not stale while the pod has not run', async () => {
    scene.host.arrives = 'pulling';
    const waiting = await scene.running();
    await samples.run(12, () => busy(10));
    await collect();
    const { body } = await scene.call('GET', `/pods/${waiting}/metrics`);
    expect([body.stale, measured(body.cpu_utilization.avg)]).toEqual([false, []]);
    expect(await history()).toMatchObject({ stale: false });
    // The agent answers but takes no samples.
    await scene.market.clock.advance(2 * MINUTE_MS);
    expect(await history()).toMatchObject({ stale: true });
  });

  it('is deleted with the account, and late samples do not restore it', async () => {
    await busyFor(6, () => 70);
    await collect();
    await scene.remove(podId);
    await scene.later();
    const gone = await scene.market.call('DELETE', '/users/me', {
      headers: scene.account.session,
      body: { password: scene.account.password },
    });
    expect(gone.status).toBe(200);
    await busyFor(30, () => 80);
    await collect();
    const rows = await scene.market.ports.db
      .selectFrom('metric_history')
      .select('owner_id')
      .execute();
    expect(rows.map((row) => row.owner_id)).toEqual([scene.node.id]);
  });

  it('is hidden from other accounts and from callers without a credential', async () => {
    const other = await scene.market.renter();
    const path = `/pods/${podId}/metrics`;
    const foreign = await scene.market.call('GET', path, { headers: other.key });
    expect([foreign.status, foreign.body.error.code]).toEqual([404, 'pod_not_found']);
    expect((await scene.market.call('GET', path)).status).toBe(401);
  });
});

describe('the history of a node', () => {
  const ofNode = (token: string, query = '') =>
    scene.market.portal('GET', `/executors/${scene.node.id}/metrics${query}`, { token });

  it('continues without pods, and is shown only to the node’s provider, without UUIDs', async () => {
    await scene.remove(podId);
    await scene.later();
    await samples.run(30, () => [
      { cpu_percent: 5, disk_used_kib: 4, gpus: { [gpu]: { power_w: 99 } } },
    ]);
    await collect();
    const { status, body } = await ofNode(await scene.market.logIn(), '?per_gpu=true');
    expect(status).toBe(200);
    expect(body.data).toMatchObject({
      executor_id: scene.node.id,
      simulated: true,
      resolution: 10,
    });
    expect(measured(body.data.cpu_utilization.avg)).toHaveLength(30);
    expect(measured(body.data.disk_used_bytes.max)[0]).toBeCloseTo(4_096, -2);
    expect(measured(body.data.power_draw_w.avg)[0]).toBeCloseTo(99, -1);
    expect(body.data.gpus).toMatchObject([{ index: 0, uuid: null }]);
    const stranger = await ofNode(await scene.market.logIn(testSigner(9)));
    expect([stranger.status, stranger.body.error.code]).toEqual([403, 'forbidden']);
  });

  it('contains no series of other pods, even if the agent reports them', async () => {
    const foreign = '3f9f41a6-0001-4000-8000-00000000000f';
    await samples.run(6, () => [...busy(10), { podId: foreign, cpu_percent: 1 }]);
    await collect();
    const rows = await scene.market.ports.db
      .selectFrom('metric_history')
      .select('owner_id')
      .execute();
    expect(rows.map((row) => row.owner_id).toSorted()).toEqual([podId, scene.node.id].toSorted());
  });

  it('is collected by one process at a time, and not written by a process that has lost its claim', async () => {
    const { db, clock } = { ...scene.market.ports, clock: scene.market.clock };
    await busyFor(6, () => 10);
    await collect();
    await clock.advance(5 * MINUTE_MS);
    const claim = async () => {
      const nowMs = clock.now();
      const due = { nowMs, untilMs: nowMs + MINUTE_MS, failing: false, limit: 10 };
      return (await db.transaction().execute((tx) => claimCollections(tx, due))).claims;
    };
    const [first, ...others] = await claim();
    if (first === undefined) throw new Error('nothing is due');
    expect([others, await claim()]).toEqual([[], []]);
    await clock.advance(2 * MINUTE_MS);
    expect(await claim()).toMatchObject([{ executorId: scene.node.id }]);
    const log = createLog({ name: 'test', level: 'silent' });
    const stored = () => db.selectFrom('metric_history').select('data').orderBy('data').execute();
    const before = await stored();
    samples.sample(...busy(99));
    await createCollector({ db, clock, log, agents: scene.market.agents }).collect([first]);
    expect(await stored()).toEqual(before);
  });

  it('is not affected by malformed answers, by samples with a time in the future, or by agents without the route', async () => {
    await busyFor(6, () => 10);
    await collect();
    const answers = [
      () => ({
        ...samples.answer({}),
        series: [{ pod_id: null, gpus: [], rows: [{ tick: 1, values: [1] }] }],
      }),
      () => ({ ...samples.answer({}), newest: { tick: 1, age_ms: -1 } }),
      () => {
        const answer = samples.answer({});
        const [series] = answer.series;
        const future = (series?.rows ?? []).map((row) => ({ ...row, tick: row.tick + 1_000 }));
        return {
          ...answer,
          more: true,
          series: [{ ...series, pod_id: null, gpus: [], rows: future }],
        };
      },
    ];
    for (const answer of answers) {
      scene.host.sampleHistory = answer;
      await scene.market.clock.advance(30 * MINUTE_MS);
      await collect();
    }
    const tens = (await ofNode(await scene.market.logIn(), '?resolution=600')).body.data;
    expect(measured(tens.cpu_utilization.avg)).toEqual([50]);
    expect(tens.samples.reduce((sum: number, count: number) => sum + count, 0)).toBe(6);
  });
});
