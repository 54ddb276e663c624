import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { seedMarket } from '../../../../test/bench/market-seed.ts';
import { createTestDatabase } from '../../../../test/fakes/scenes/central-database.ts';
import type { Database } from '../../platform/database/tables.ts';
import type { ExecutorDetailResponse } from './executor.schemas.ts';
import { findExecutor } from './executor.store.ts';
import { executorResponse, type ResponseOptions } from './executor-response.ts';
import { createMarketView } from './market-view.ts';
import { MAX_PAGE_SIZE } from './node-filters.schemas.ts';
import { createNodeListJson } from './node-list-json.ts';

const OPTIONS: ResponseOptions = { nowMs: 3_600_001, summary: false, personal: null };

let db: Database;
beforeEach(async () => {
  db = await createTestDatabase();
});
afterEach(() => db.destroy());

async function listed(texts: ReturnType<typeof createNodeListJson>, options = OPTIONS) {
  const nodes = (await createMarketView({ db }).offers()).nodes.map(({ node }) => node);
  const json = await texts.listOf(nodes, options);
  const rows: ExecutorDetailResponse[] = JSON.parse(
    Buffer.isBuffer(json) ? json.toString() : await text(json),
  );
  return { nodes, rows };
}

it('encodes the same rows with and without its cache, even after a change', async () => {
  await seedMarket(db, 8);
  const texts = createNodeListJson(db);
  for (const options of [OPTIONS, { ...OPTIONS, summary: true }, OPTIONS]) {
    const { nodes, rows } = await listed(texts, options);
    expect(rows).toHaveLength(nodes.length);
    for (const [index, { id }] of nodes.entries()) {
      const executor = await findExecutor(db, id);
      if (executor === undefined) throw new Error('the node was removed');
      expect(rows[index]).toEqual(executorResponse(executor, options));
    }
  }
  const personal = () => ({ is_bookmarked: true, machine_request_id: null });
  const later = await listed(texts, { ...OPTIONS, nowMs: 7_200_001, personal });
  expect(later.rows[0]).toMatchObject({ uptime_in_minutes: 120, is_bookmarked: true });

  await db.updateTable('executors').set({ price_uusd_per_gpu_hour: 7_000_000 }).execute();
  const { rows } = await listed(texts);
  expect(rows.map((row) => row.price_per_gpu)).toEqual(rows.map(() => 7));
});

it('streams a list that is longer than one page', async () => {
  await seedMarket(db, MAX_PAGE_SIZE + 500);
  const { nodes, rows } = await listed(createNodeListJson(db), { ...OPTIONS, summary: true });
  expect(nodes.length).toBeGreaterThan(MAX_PAGE_SIZE);
  expect(rows.map(({ id }) => id)).toEqual(nodes.map(({ id }) => id));
});

it('returns an empty list for an empty market', async () => {
  expect((await listed(createNodeListJson(db))).rows).toEqual([]);
});
