import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  createTestDatabase,
  onPostgres,
  planOf,
  runSql,
} from '../../../../test/fakes/scenes/central-database.ts';
import type { Database } from '../../platform/database/tables.ts';
import { listPeriods } from './settlement.store.ts';

const DAYS = 10_000;
const PROVIDERS = 20;
const DATES = 100;
const PER_INSERT = 500;
const PAGE = { limit: 3, offset: 2 };

let db: Database;
beforeAll(async () => {
  db = await createTestDatabase();
  const days = Array.from({ length: DAYS }, (_, at) => dayOf(at));
  for (let from = 0; from < DAYS; from += PER_INSERT) {
    const rows = days.slice(from, from + PER_INSERT);
    await db.insertInto('billing_periods').values(rows).execute();
  }
  if (onPostgres()) await runSql(db, 'vacuum analyze billing_periods');
});
afterAll(() => db.destroy());

function dayOf(at: number) {
  return {
    pod_id: `pod-${String(at).padStart(5, '0')}`,
    day_ms: Math.floor(at / PROVIDERS) % DATES,
    provider_id: `provider-${at % PROVIDERS}`,
    executor_id: 'node',
    gpu_count: 1,
    from_ms: 0,
    to_ms: 10,
    billed_ms: 10,
    gross_uusd: 100,
    net_uusd: 90,
    refunded_gross_uusd: 0,
    refunded_net_uusd: 0,
  };
}

it('lists the days of a provider, the latest first', async () => {
  const { periods, total } = await listPeriods(db, 'provider-3', PAGE);
  // Five days of the provider have the latest date: pods 1983, 3983, 5983, 7983 and 9983.
  expect(periods.map(({ pod_id: pod, day_ms: day }) => [pod, day])).toEqual([
    ['pod-05983', DATES - 1],
    ['pod-07983', DATES - 1],
    ['pod-09983', DATES - 1],
  ]);
  expect(total).toBe(DAYS / PROVIDERS);
  const all = await listPeriods(db, null, PAGE);
  expect(all.total).toBe(DAYS);
});

it('reads only days of the provider', async () => {
  const plan = (await planOf(db, (watched) => listPeriods(watched, 'provider-3', PAGE))).join('\n');
  expect(plan).toMatch(
    onPostgres()
      ? /Scan (?:Backward )?(?:using|on) billing_periods_\w+ .*Index Cond: \(provider_id = /s
      : /^SEARCH billing_periods USING INDEX billing_periods_of \(provider_id=\?\)/,
  );
  expect(plan).not.toMatch(/Seq Scan|^SCAN/m);
});
