import { sql } from 'kysely';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { seedMarket } from '../../../test/bench/market-seed.ts';
import { createPostgresDatabase } from '../../../test/fakes/central-database.ts';
import { openCentralDatabase } from '../db/database.ts';
import type { Database } from '../db/tables.ts';
import { forgetForeignRevisions } from './market.store.ts';
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

it('reads nothing again that did not change, also after a move to another cluster', async () => {
  await sql`update executors set revision = 9000000000000 where price_uusd_per_gpu_hour > 0`.execute(
    db,
  );
  await forgetForeignRevisions(db);
  const view = createMarketView({ db });
  const before = await view.listed();
  expect(before).not.toHaveLength(0);
  // A transaction under way keeps the horizon where it is.
  const slow = await other.startTransaction().execute();
  await slow.updateTable('executors').set({ paused: 1 }).where('id', '=', 'none').execute();
  await sql`select pg_current_xact_id()`.execute(slow);
  const id = before[0]?.node.id ?? '';
  await db
    .updateTable('executors')
    .set({ price_uusd_per_gpu_hour: 1 })
    .where('id', '=', id)
    .execute();
  const changed = await view.listed();
  expect(changed).not.toBe(before);
  expect(await view.listed()).toBe(changed);
  await slow.rollback().execute();
  const { rows } = await sql<{ n: number }>`select max(revision) as n from executors`.execute(db);
  expect(rows[0]?.n).toBeLessThan(9_000_000_000_000);
});
