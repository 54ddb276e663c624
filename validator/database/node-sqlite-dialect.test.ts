import { Kysely, sql } from 'kysely';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type DatabaseSync, openSqlite } from '#shared/runtime/sqlite.ts';
import { dialectOver } from './node-sqlite-dialect.ts';

type Tables = { items: { id: number } };

const ALLOWED = 0;

let database: DatabaseSync;
let db: Kysely<Tables>;
beforeEach(async () => {
  database = openSqlite(':memory:');
  db = new Kysely<Tables>({ dialect: dialectOver(database) });
  await sql`create table items (id integer primary key)`.execute(db);
  await db
    .insertInto('items')
    .values([{ id: 1 }, { id: 2 }, { id: 3 }])
    .execute();
});
afterEach(() => db.destroy());

async function page(limit: number, offset: number): Promise<number[]> {
  const rows = await db
    .selectFrom('items')
    .select('id')
    .orderBy('id')
    .limit(limit)
    .offset(offset)
    .execute();
  return rows.map(({ id }) => id);
}

it('prepares a query with a limit once for all limits', async () => {
  // SQLite calls the authorizer whenever it prepares a statement, also when it does so again before a run.
  let authorized = 0;
  database.setAuthorizer(() => {
    authorized += 1;
    return ALLOWED;
  });
  expect(await page(1, 0)).toEqual([1]);
  const once = authorized;
  expect(once).toBeGreaterThan(0);
  expect(await page(2, 1)).toEqual([2, 3]);
  expect(await page(0, 0)).toEqual([]);
  expect(authorized).toBe(once);
});
