import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  createTestDatabase,
  onPostgres,
  planOf,
  runSql,
} from '../../../../test/fakes/scenes/central-database.ts';
import type { Database } from '../../platform/database/tables.ts';
import { sumByNode } from './settlement.store.ts';

const DAYS = 10_000;
const PROVIDERS = 20;
const NODES_EACH = 5;
const PER_INSERT = 500;
const PAGE = { limit: 2, offset: 0 };

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
  const provider = at % PROVIDERS;
  return {
    pod_id: `pod-${at}`,
    day_ms: 0,
    provider_id: `provider-${provider}`,
    executor_id: `node-${provider}-${Math.floor(at / PROVIDERS) % NODES_EACH}`,
    gpu_count: 1,
    from_ms: 0,
    to_ms: 10,
    billed_ms: 10,
    gross_uusd: 100 + (Math.floor(at / PROVIDERS) % NODES_EACH),
    net_uusd: 90 + (Math.floor(at / PROVIDERS) % NODES_EACH),
    refunded_gross_uusd: 2,
    refunded_net_uusd: 1,
  };
}

it('sums the days of a provider by node, the highest first', async () => {
  const { nodes, sum, total } = await sumByNode(db, 'provider-3', PAGE);
  const each = DAYS / PROVIDERS / NODES_EACH;
  expect(nodes.map(({ executor_id: id, net_uusd: net }) => [id, net])).toEqual([
    ['node-3-4', each * 93],
    ['node-3-3', each * 92],
  ]);
  expect(sum).toEqual({
    billed_ms: each * NODES_EACH * 10,
    gross_uusd: each * (98 + 99 + 100 + 101 + 102),
    net_uusd: each * (89 + 90 + 91 + 92 + 93),
  });
  expect(total).toBe(NODES_EACH);
});

it('reads only entries of the provider, on SQLite from the index alone', async () => {
  const plan = await planOf(db, (watched) => sumByNode(watched, 'provider-3', PAGE));
  expect(plan.join('\n')).toMatch(
    onPostgres()
      ? // Only Index Only Scans read no table; they need pages that a vacuum has marked.
        /Scan (?:using|on) billing_periods_by_node .*Index Cond: \(provider_id = /s
      : /^SEARCH billing_periods USING COVERING INDEX billing_periods_by_node \(provider_id=\?\)$/,
  );
});
