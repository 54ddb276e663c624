import { afterEach, beforeEach, expect, it } from 'vitest';
import { seedMarket } from '../../../test/bench/market-seed.ts';
import { createPostgresDatabase } from '../../../test/fakes/central-database.ts';
import { openCentralDatabase } from '../db/database.ts';
import type { Database } from '../db/tables.ts';
import { createMarketView } from './market-view.ts';

let db: Database;
let other: Database;

beforeEach(async () => {
  const url = await createPostgresDatabase();
  db = await openCentralDatabase(url);
  other = await openCentralDatabase(url);
  await seedMarket(db, 8);
});
afterEach(async () => {
  await db.destroy();
  await other.destroy();
});

it('misses no change of another process, in whichever order transactions come to their end', async () => {
  const view = createMarketView({ db });
  const nodes = (await view.listed()).map(({ node }) => node.id);
  const [first = '', second = ''] = nodes;
  const pause = (handle: Database, id: string) =>
    handle.updateTable('executors').set({ paused: 1 }).where('id', '=', id).execute();

  const slow = await other.startTransaction().execute();
  await slow.updateTable('executors').set({ paused: 1 }).where('id', '=', first).execute();
  await pause(other, second);
  const without = (...gone: string[]) => nodes.filter((id) => !gone.includes(id));
  const seen = async () => (await view.listed()).map(({ node }) => node.id);
  expect(await seen()).toEqual(without(second));
  expect(await seen()).toEqual(without(second));
  await slow.commit().execute();
  expect(await seen()).toEqual(without(first, second));
});
