import { afterEach, beforeEach, expect, it } from 'vitest';
import { seedMarket } from '../../../../test/bench/market-seed.ts';
import { createTestDatabase } from '../../../../test/fakes/scenes/central-database.ts';
import type { Database } from '../../platform/database/tables.ts';
import {
  type Claim,
  claimCollections,
  enterCollections,
  findCursor,
  type Outcome,
  RECENT,
  readParts,
  releaseCollections,
} from './metric-history.store.ts';

const [A = '', B = '', C = ''] = ['0', '1', '2'].map(
  (digit) => `00000000-0000-4000-9000-00000000000${digit}`,
);
const CURSOR = { epoch: '00000000-0000-4000-8000-0000000000ee', tick: 9, shift: 3 };

let db: Database;
beforeEach(async () => {
  db = await createTestDatabase();
  await seedMarket(db, 3);
  for (const id of [A, B, C]) await enterCollections(db, id);
});
afterEach(() => db.destroy());

function claim(nowMs: number, limit = 10, failing = false) {
  const options = { nowMs, untilMs: nowMs + 100, failing, limit };
  return db.transaction().execute((tx) => claimCollections(tx, options));
}

const outcomeOf = (given: Claim, change: Partial<Outcome> = {}): Outcome => ({
  claim: given,
  dueAtMs: 1_000,
  failures: 0,
  cursor: CURSOR,
  rows: [{ ownerId: given.executorId, part: RECENT, newestDay: 1, data: new Uint8Array([7]) }],
  ...change,
});

it('stores the outcomes of several executors, except those whose claim was taken over', async () => {
  const { claims, isFull } = await claim(0);
  expect([claims.map(({ executorId }) => executorId).toSorted(), isFull]).toEqual([
    [A, B, C],
    false,
  ]);
  expect(await claim(99)).toEqual({ claims: [], isFull: false });
  const [first, second, third] = claims;
  if (first === undefined || second === undefined || third === undefined) throw new Error('none');
  // Another process claims the third executor, because this one is too slow.
  await db
    .updateTable('metric_collections')
    .set({ due_at: 200 })
    .where('executor_id', '=', third.executorId)
    .execute();
  const failed = { failures: 1, cursor: null, dueAtMs: 500, rows: [] };
  await releaseCollections(db, [outcomeOf(first), outcomeOf(second, failed), outcomeOf(third)]);
  expect([...(await readParts(db, [A, B, C], RECENT)).keys()]).toEqual([first.executorId]);
  expect(await findCursor(db, first.executorId)).toEqual(CURSOR);
  expect(await findCursor(db, third.executorId)).toBeNull();
  expect((await claim(500, 10, true)).claims).toMatchObject([
    { executorId: second.executorId, failures: 1, cursor: null },
  ]);
  expect((await claim(1_000)).claims.map(({ executorId }) => executorId).toSorted()).toEqual(
    [first.executorId, third.executorId].toSorted(),
  );
});

it('deletes the due entry of a removed executor, and keeps an entry that is entered again', async () => {
  await db.updateTable('executors').set({ state: 'removed' }).where('id', '=', B).execute();
  const { claims } = await claim(0);
  expect(claims.map(({ executorId }) => executorId).toSorted()).toEqual([A, C]);
  await releaseCollections(
    db,
    claims.map((each) => outcomeOf(each)),
  );
  await enterCollections(db, A);
  const rows = await db
    .selectFrom('metric_collections')
    .select(['executor_id', 'due_at'])
    .execute();
  expect(rows.toSorted((a, b) => a.executor_id.localeCompare(b.executor_id))).toEqual([
    { executor_id: A, due_at: 1_000 },
    { executor_id: C, due_at: 1_000 },
  ]);
});

it('reports that more executors may be due', async () => {
  expect(await claim(0, 2)).toMatchObject({ claims: [{}, {}], isFull: true });
  expect(await claim(0, 2)).toMatchObject({ claims: [{}], isFull: false });
});
