import { afterEach, beforeEach, expect, it } from 'vitest';
import { createTestDatabase } from '../../../../test/fakes/scenes/central-database.ts';
import { insertOne, prepared, preparedEach, type Slots } from './prepared.ts';
import type { Database } from './tables.ts';

let db: Database;
let built = 0;

beforeEach(async () => {
  db = await createTestDatabase();
});
afterEach(() => db.destroy());

const grants = prepared((handle, { hash, afterMs }: Slots<{ hash: string; afterMs: number }>) => {
  built += 1;
  return handle
    .selectFrom('signup_credits')
    .select('granted_at')
    .where('email_hash', '=', hash)
    .where('granted_at', '>', afterMs);
});

async function grantsOf(handle: Database, hash: string, afterMs: number): Promise<number[]> {
  return (await grants(handle, { hash, afterMs })).rows.map((row) => row.granted_at);
}

it('each call of a prepared query uses the values of that call, inside and outside transactions', async () => {
  await insertOne(db, 'signup_credits', { email_hash: 'one', granted_at: 1 });
  expect(await grantsOf(db, 'one', 0)).toEqual([1]);
  const before = built;
  const undone = db.transaction().execute(async (tx) => {
    await insertOne(tx, 'signup_credits', { email_hash: 'two', granted_at: 2 });
    expect(await grantsOf(tx, 'two', 1)).toEqual([2]);
    throw new Error('rolled back');
  });
  await expect(undone).rejects.toThrow('rolled back');
  expect(await grantsOf(db, 'two', 0)).toEqual([]);
  expect(await grantsOf(db, 'one', 1)).toEqual([]);
  expect(await grantsOf(db, "one' or 'a' = 'a", 0)).toEqual([]);
  expect(built).toBe(before);
});

it('inserts columns by name, in any order', async () => {
  await insertOne(db, 'signup_credits', { granted_at: 3, email_hash: "it's; drop table" });
  await insertOne(db, 'signup_credits', { email_hash: 'other', granted_at: 4 });
  const rows = await db.selectFrom('signup_credits').selectAll().orderBy('granted_at').execute();
  expect(rows).toEqual([
    { email_hash: "it's; drop table", granted_at: 3 },
    { email_hash: 'other', granted_at: 4 },
  ]);
});

it('writes the given columns only, and compiles each set of columns once', async () => {
  let compiled = 0;
  const change = preparedEach((handle, { of }: Slots<{ of: string }>, columns) => {
    compiled += 1;
    return handle.updateTable('due_work').set(columns).where('subject', '=', of);
  });
  const work = { kind: 'k', due_at: 1, look_at: 1, attempts: 0, last_error: null };
  await insertOne(db, 'due_work', { ...work, subject: 'a' });
  await insertOne(db, 'due_work', { ...work, subject: 'b' });
  await change(db, { attempts: 1, last_error: 'x', due_at: undefined }, { of: 'a' });
  await change(db, { attempts: 2, last_error: null }, { of: 'a' });
  expect(compiled).toBe(1);
  const { numAffectedRows } = await change(db, { look_at: 7 }, { of: 'a' });
  expect([compiled, numAffectedRows]).toEqual([2, 1n]);
  const rows = await db
    .selectFrom('due_work')
    .selectAll()
    .where('kind', '=', 'k')
    .orderBy('subject')
    .execute();
  expect(rows).toEqual([
    { ...work, subject: 'a', attempts: 2, look_at: 7 },
    { ...work, subject: 'b' },
  ]);
});
