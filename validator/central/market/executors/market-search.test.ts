import { afterEach, beforeEach, expect, it } from 'vitest';
import { seedMarket } from '../../../../test/bench/market-seed.ts';
import { createTestDatabase } from '../../../../test/fakes/scenes/central-database.ts';
import { createSeededRandom } from '../../../../test/fakes/seeded-random.ts';
import type { Database } from '../../platform/database/tables.ts';
import { createMarketSearch } from './market-search.ts';
import { createMarketView } from './market-view.ts';
import { NO_ANNOTATIONS } from './node-annotations.ts';
import { ExecutorListQuery } from './node-filters.schemas.ts';

const NODES = 300;
const ROUNDS = 60;
/** More changes than a cached result applies one by one. */
const MANY = 150;

let db: Database;

beforeEach(async () => {
  db = await createTestDatabase();
  await seedMarket(db, NODES);
});
afterEach(() => db.destroy());

it('returns the same nodes from its cache as an uncached search, after any change', async () => {
  const random = createSeededRandom(5);
  const view = createMarketView({ db });
  const search = createMarketSearch();
  const queries = [
    {},
    { size: '7', page: '3' },
    { price_lte: '1.2', gpu_count_gte: '2' },
    { price_lte: '1.2', gpu_count_gte: '2', size: '10' },
    { machine_names: 'NVIDIA H200,NVIDIA L40S', price_gte: '0.5' },
    { nvlink: 'true', min_download_mbps: '0' },
    // In many rounds no node meets the last of these filters.
    { price_gte: '1.1', gpu_count_gte: '8', nvlink: 'true', explain: 'true' },
    { machine_names: 'NVIDIA L40S', gpu_count_gte: '8', price_gte: '1.1', explain: 'true' },
    { machine_names: 'NVIDIA B200', explain: 'true' },
    { lat: '50', lon: '8', max_distance_mile: '1', explain: 'true' },
    { lat: '50', lon: '8', max_distance_mile: '1500', price_gte: '1.1', explain: 'true' },
  ].map((query) => ExecutorListQuery.parse(query));
  const ids = (await db.selectFrom('executors').select('id').execute()).map(({ id }) => id);
  const some = (count: number) =>
    Array.from({ length: count }, () => ids[random.int(ids.length)] ?? '');
  const change = (count: number) =>
    db
      .updateTable('executors')
      .set({
        price_uusd_per_gpu_hour: random.int(3) * 600_000,
        paused: random.int(2) === 0 ? 0 : 1,
        nvlink: random.int(2) === 0 ? 0 : 1,
        lat: random.int(3) === 0 ? null : random.int(90) + 0.5,
        lon: random.int(90),
      })
      .where('id', 'in', some(count))
      .execute();
  const found = new Set<string>();
  const unmet = new Set<boolean>();
  for (let round = 0; round < ROUNDS; round += 1) {
    await change(round % 9 === 0 ? MANY : 1 + random.int(4));
    const offers = await view.offers();
    // Only some queries each time, so that the other results must catch up on more changes.
    for (const query of queries.filter(() => random.int(3) > 0)) {
      const page = search(offers, query, NO_ANNOTATIONS);
      expect(page).toEqual(createMarketSearch()(offers, query, NO_ANNOTATIONS));
      found.add(JSON.stringify(page));
      if (query.nvlink === true) unmet.add(page.nearest.length > 0);
    }
  }
  expect(found.size).toBeGreaterThan(ROUNDS);
  expect(unmet.size).toBe(2);
});
