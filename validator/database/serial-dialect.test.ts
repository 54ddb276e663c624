/** Tests users of one connection: the crash of one rolls back its transaction, and does not affect the others. */
import { expect, it } from 'vitest';
import { collectGarbage } from '../../test/measure/collect-garbage.ts';
import { nodeSqliteDialect } from './node-sqlite-dialect.ts';
import { type SerialUser, serialDialect } from './serial-dialect.ts';

type Tables = { numbers: { number: number } };

const turn = () => new Promise((resolve) => setImmediate(resolve));

async function twoUsers(): Promise<[SerialUser, SerialUser]> {
  const serial = serialDialect(nodeSqliteDialect(':memory:'), (operation) => operation());
  const [first, second] = [serial.addUser(), serial.addUser()];
  await first.open<Tables>().schema.createTable('numbers').addColumn('number', 'integer').execute();
  return [first, second];
}

it('rolls back the transaction of a user that crashes, and lets the next user begin', async () => {
  const [first, second] = await twoUsers();
  const results: string[] = [];
  const written = first
    .open<Tables>()
    .transaction()
    .execute(async (tx) => {
      await tx.insertInto('numbers').values({ number: 1 }).execute();
      results.push('inserted');
      await tx.insertInto('numbers').values({ number: 2 }).execute();
    });
  void written.finally(() => results.push('ended'));
  const crashed = Promise.withResolvers<void>();
  // The transaction begins with the first operation and inserts with the second.
  first.afterOperations(2, () => crashed.resolve(first.crash()));
  await crashed.promise;
  const db = second.open<Tables>();
  await db.insertInto('numbers').values({ number: 3 }).execute();
  await turn();
  expect(results).toEqual([]);
  expect(await db.selectFrom('numbers').select('number').execute()).toEqual([{ number: 3 }]);
});

/** Begins a query. Returns a reference that does not retain what waits for its result. */
function read(user: SerialUser): WeakRef<object> {
  const state = { rows: 0 };
  void user
    .open<Tables>()
    .selectFrom('numbers')
    .selectAll()
    .execute()
    .then((rows) => {
      state.rows = rows.length;
    });
  return new WeakRef(state);
}

it('retains nothing that waits for a crashed user', async () => {
  const [first] = await twoUsers();
  await first.crash();
  const waits = read(first);
  await turn();
  collectGarbage();
  expect(waits.deref()).toBeUndefined();
});

it('keeps what a user committed before it crashed', async () => {
  const [first, second] = await twoUsers();
  await first.open<Tables>().insertInto('numbers').values({ number: 1 }).execute();
  await first.crash();
  const db = second.open<Tables>();
  expect(await db.selectFrom('numbers').selectAll().execute()).toEqual([{ number: 1 }]);
});

it('lets users wait for the transaction of another', async () => {
  const [first, second] = await twoUsers();
  const order: string[] = [];
  const written = first
    .open<Tables>()
    .transaction()
    .execute(async (tx) => {
      await tx.insertInto('numbers').values({ number: 1 }).execute();
      order.push('first');
    });
  const read = second.open<Tables>().selectFrom('numbers').selectAll().execute();
  void read.then(() => order.push('second'));
  await Promise.all([written, read]);
  await turn();
  expect(order).toEqual(['first', 'second']);
});
