/** Stored size of the history of a pod and of its node, each with 8 GPUs at full load, after 30 days. */
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import {
  MAX_PAGE_TICKS,
  type SampleHistory,
  type SampleHistoryQuery,
} from '#shared/api/agent/metric-history.ts';
import { createLog } from '#shared/runtime/log.ts';
import { createFakeAgents } from '../../../../test/fakes/agents/fake-agents.ts';
import { onPostgres } from '../../../../test/fakes/scenes/central-database.ts';
import { createTestMarket, type TestMarket } from '../../../../test/fakes/scenes/market-fixture.ts';
import { createSeededRandom } from '../../../../test/fakes/seeded-random.ts';
import { fullLoad } from '../../../../test/fixtures/metric-load.ts';
import type { Database } from '../../platform/database/tables.ts';
import { createCollector } from './collect.ts';
import { claimCollections } from './metric-history.store.ts';

const MAX_BYTES = 200_000;
const GPUS = 8;
const DAYS = 30;
const TICK_MS = 10_000;
const TICKS_PER_HOUR = 360;
const TICKS = DAYS * 24 * TICKS_PER_HOUR;
/**
 * Number of ticks before the last day, which have one sample a minute: means of fewer samples are noisier and compress
 * worse.
 */
const SPARSE_TICKS = (DAYS - 1) * 24 * TICKS_PER_HOUR;
const SPARSE = 6;
const HOUR_MS = 3_600_000;
const OWNERS = 2;

let market: TestMarket;
let podId: string;
let key: Record<string, string>;
let nodeId: string;
beforeAll(async () => {
  const agents = createFakeAgents();
  market = await createTestMarket({ agents, signupCreditUusd: 1_000_000_000_000 });
  const node = await market.verifiedNode({ gpus: GPUS });
  const account = await market.renter();
  nodeId = node.id;
  key = account.key;
  podId = (await market.rent(account, node.id)).body.id;
});
afterAll(() => market.close());

/** Bytes of the table with its index and large values, of live rows only. */
async function storedBytes(db: Database): Promise<number> {
  if (onPostgres()) {
    // VACUUM FULL keeps dead rows that a concurrent transaction may still read, so it gets a copy without dead rows.
    await sql`create table copied (like metric_history including all)`.execute(db);
    await sql`insert into copied select * from metric_history`.execute(db);
    await sql`vacuum full copied`.execute(db);
    const { rows } = await sql<{
      bytes: number;
    }>`select pg_total_relation_size('copied') as bytes`.execute(db);
    await sql`drop table copied`.execute(db);
    return Number(rows[0]?.bytes);
  }
  const pages = async (name: string) => {
    const { rows } = await sql<Record<string, number>>`${sql.raw(`pragma ${name}`)}`.execute(db);
    return Number(Object.values(rows[0] ?? {})[0]);
  };
  return (
    ((await pages('page_count')) - (await pages('freelist_count'))) * (await pages('page_size'))
  );
}

it(`stores 30 days of 10-minute rows, 3 hours of 1-minute rows and 15 minutes of samples in at most ${MAX_BYTES} bytes`, async () => {
  const { db } = market.ports;
  const { clock } = market;
  const load = fullLoad(createSeededRandom(1), GPUS);
  const gpus = Array.from(
    { length: GPUS },
    (_, index) => `GPU-0000000${index}-0000-4000-8000-000000000000`,
  );
  const client: Pick<AgentClient, 'sampleHistory'> = {
    async sampleHistory({ after = -1 }: SampleHistoryQuery): Promise<SampleHistory> {
      const stride = after < SPARSE_TICKS - SPARSE ? SPARSE : 1;
      const first = Math.floor(after / stride + 1) * stride;
      const ticks = Array.from({ length: MAX_PAGE_TICKS }, (_, index) => first + index * stride);
      const rows = ticks.map((tick) => ({ tick, values: load(tick) }));
      const series = [null, podId].map((id) => ({ pod_id: id, gpus, rows }));
      const last = ticks.at(-1) ?? 0;
      const newest = Math.floor(clock.now() / TICK_MS) - firstAt - 1;
      const age_ms = clock.now() - (newest + firstAt) * TICK_MS;
      return {
        epoch: podId,
        newest: { tick: newest, age_ms },
        more: last + stride < newest,
        series,
      };
    },
  };
  const firstAt = Math.floor(clock.now() / TICK_MS);
  const agents = { ...market.agents, clientOf: () => client as AgentClient };
  const log = createLog({ name: 'test', level: 'silent' });
  const collector = createCollector({ db, clock, log, agents });
  const before = await storedBytes(db);
  await db.updateTable('metric_collections').set({ due_at: 0 }).execute();
  for (
    let tick = 0;
    tick < TICKS;
    tick += tick < SPARSE_TICKS ? 2 * TICKS_PER_HOUR : TICKS_PER_HOUR
  ) {
    const stepMs = (tick < SPARSE_TICKS ? 2 : 1) * HOUR_MS;
    await clock.advance(stepMs);
    const nowMs = clock.now();
    const due = { nowMs, untilMs: nowMs + HOUR_MS / 2, failing: false, limit: 1 };
    await collector.collect((await claimCollections(db, due)).claims);
  }
  const bytes = ((await storedBytes(db)) - before) / OWNERS;
  const rows = await db.selectFrom('metric_history').select(['owner_id', 'data']).execute();
  const plain = rows.reduce((sum, row) => sum + row.data.length, 0) / OWNERS;
  expect(rows).toHaveLength(2 * OWNERS);
  expect(plain).toBeGreaterThan(MAX_BYTES / 2);
  expect(bytes).toBeGreaterThan(plain);
  expect(bytes).toBeLessThanOrEqual(MAX_BYTES);

  const ofPod = async (resolution: number) => {
    const path = `/pods/${podId}/metrics?resolution=${resolution}&per_gpu=true`;
    return (await market.call('GET', path, { headers: key })).body;
  };
  for (const [resolution, entries] of [
    [10, 90],
    [60, 180],
    [600, 4_320],
  ] as const) {
    const { samples, gpus: each, power_draw_w: power } = await ofPod(resolution);
    const isComplete = (count: number) => count === resolution / 10;
    expect([samples.length, each.length]).toEqual([entries, GPUS]);
    // The first interval may have begun before the samples, and the last may not have ended.
    expect(samples.slice(1, -1)).not.toContain(0);
    expect(samples.slice(-100, -1).every(isComplete)).toBe(true);
    for (const { temperature_c: values } of each) expect(values.slice(1, -1)).not.toContain(null);
    expect(power.min[5]).toBeLessThan(power.avg[5]);
    expect(power.max[5]).toBeGreaterThan(power.avg[5]);
  }
  const token = await market.logIn();
  const node = await market.portal('GET', `/executors/${nodeId}/metrics?resolution=600`, { token });
  expect(node.body.data.cpu_utilization.avg.slice(1, -1)).not.toContain(null);
});
