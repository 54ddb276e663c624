import { afterEach, beforeEach, expect, it } from 'vitest';
import { seedMarket } from '../../../../test/bench/market-seed.ts';
import { createPostgresDatabase } from '../../../../test/fakes/scenes/central-database.ts';
import { openCentralDatabase } from '../../platform/database/database.ts';
import type { Database } from '../../platform/database/tables.ts';
import { resetForeignRevisions } from './market.store.ts';
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

it('reads every change of another process, in any order in which transactions commit', async () => {
  const view = createMarketView({ db });
  const nodes = (await view.offers()).nodes.map(({ node }) => node.id);
  const [first = '', second = ''] = nodes;
  const pause = (handle: Database, id: string) =>
    handle.updateTable('executors').set({ paused: 1 }).where('id', '=', id).execute();

  const slow = await other.startTransaction().execute();
  await slow.updateTable('executors').set({ paused: 1 }).where('id', '=', first).execute();
  await pause(other, second);
  const without = (...gone: string[]) => nodes.filter((id) => !gone.includes(id));
  const seen = async () => (await view.offers()).nodes.map(({ node }) => node.id);
  const offered = async () =>
    (await view.figures()).byMachine().reduce((sum, machine) => sum + machine.nodes, 0);
  const before = await offered();
  expect(await seen()).toEqual(without(second));
  expect(await seen()).toEqual(without(second));
  await slow.commit().execute();
  expect(await offered()).toBe(before - 1);
  expect(await seen()).toEqual(without(first, second));
});

it('reads unchanged rows once, even after the database was moved to another PostgreSQL cluster', async () => {
  const foreign = 9_000_000_000_000;
  await db.updateTable('executors').set({ revision: foreign }).execute();
  await resetForeignRevisions(db);
  const view = createMarketView({ db });
  const [first, second] = (await view.offers()).nodes.map(({ node }) => node.id);
  // An open transaction holds back `changeHorizon`, so changes after it are read repeatedly.
  const slow = await other.startTransaction().execute();
  const price = (cents: number) => ({ price_uusd_per_gpu_hour: cents * 10_000 });
  await slow
    .updateTable('executors')
    .set(price(2))
    .where('id', '=', second ?? '')
    .execute();
  const { version } = await view.offers();
  await db
    .updateTable('executors')
    .set(price(1))
    .where('id', '=', first ?? '')
    .execute();
  const changed = (await view.offers()).version;
  expect(changed).toBeGreaterThan(version);
  expect((await view.offers()).version).toBe(changed);
  await slow.rollback().execute();
  const revisions = await db.selectFrom('executors').select('revision').execute();
  expect(Math.max(...revisions.map(({ revision }) => revision))).toBeLessThan(foreign);
});
