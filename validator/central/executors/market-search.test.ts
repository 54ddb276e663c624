import { afterEach, beforeEach, expect, it } from 'vitest';
import { seedMarket } from '../../../test/bench/market-seed.ts';
import { createTestDatabase } from '../../../test/fakes/central-database.ts';
import { createSeededRandom } from '../../../test/fakes/seeded-random.ts';
import type { Database } from '../db/tables.ts';
import type { ExecutorListQuery } from './executor.schemas.ts';
import { lookThrough, searchMarket } from './market-search.ts';
import { NO_NOTES } from './node-notes.ts';

const NODES = 300;

let db: Database;

beforeEach(async () => {
  db = await createTestDatabase();
  await seedMarket(db, NODES);
});
afterEach(() => db.destroy());

it('finds and counts in the database what looking at every node finds and counts', async () => {
  const random = createSeededRandom(7);
  const maybe = <T>(...values: T[]) =>
    random.int(2) === 0 ? values[random.int(values.length)] : undefined;
  const { ids } = await searchMarket(db, {}, NO_NOTES);
  const third = ids.filter((_, index) => index % 3 === 0);
  const noted = { ...NO_NOTES, bookmarked: new Set(['none', ...third]) };
  let found = 0;
  let foundNoted = 0;
  for (let round = 0; round < 150; round += 1) {
    const query: ExecutorListQuery = {
      machine_names: maybe('NVIDIA L40S', 'NVIDIA H200, NVIDIA L40S', 'nvidia l40s', ''),
      price_lte: maybe(0.5, 1.2, 3, 1e300),
      price_gte: maybe(0.303, 1, -1e300),
      gpu_count_lte: maybe(1, 3, 8),
      gpu_count_gte: maybe(2, 4, 8),
      collateral_deposited: maybe(true, false),
      nvlink: maybe(true, false),
      bookmarked: maybe(true, false),
      machine_request_id: random.int(8) === 0 ? 'not-the-caller’s' : undefined,
      page: maybe(1, 2, 100),
      size: maybe(1, 7, 1_000),
    };
    const notes = round % 4 === 0 ? NO_NOTES : noted;
    const page = await searchMarket(db, query, notes);
    expect([query, page]).toEqual([query, await lookThrough(db, query, notes)]);
    found += page.ids.length;
    if (query.bookmarked === true) foundNoted += page.ids.length;
  }
  expect(found).toBeGreaterThan(1_000);
  expect(foundNoted).toBeGreaterThan(0);
});
