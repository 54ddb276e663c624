/** Queries of hidden rentals: a row waits for a free node, is updated before the request, and stays until it is old. */
import { sql } from 'kysely';
import { prepared, type Slots } from '../store/prepared.ts';
import type { HiddenRentalRow, StoreDb } from '../store/tables.ts';

/** Inserts a waiting rental. Returns false if the executor has an open one. */
export async function insertWaiting(
  db: StoreDb,
  { id, executorId, dueMs }: { id: string; executorId: string; dueMs: number },
): Promise<boolean> {
  const { numInsertedOrUpdatedRows: count = 0n } = await db
    .insertInto('hidden_rentals')
    .values({
      id,
      executor_id: executorId,
      due_ms: dueMs,
      account: null,
      request_json: null,
      idempotency_key: null,
      pod_id: null,
      started_ms: null,
      cost_uusd: 0,
      ended_ms: null,
      result_json: null,
    })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirstOrThrow();
  return count > 0n;
}

/** Open rentals, those that are due first first. */
export function listOpen(db: StoreDb): Promise<HiddenRentalRow[]> {
  return db
    .selectFrom('hidden_rentals')
    .selectAll()
    .where('ended_ms', 'is', null)
    .orderBy('due_ms')
    .execute();
}

/** Time at which the last rental of each executor was due. */
export async function lastDue(db: StoreDb): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('hidden_rentals')
    .select((eb) => ['executor_id', eb.fn.max('due_ms').as('due_ms')])
    .groupBy('executor_id')
    .execute();
  return new Map(rows.map(({ executor_id, due_ms }) => [executor_id, due_ms]));
}

/** Highest costs of the rentals that began since a time, in micro-dollars. */
export async function spentSince(db: StoreDb, sinceMs: number): Promise<number> {
  const { spent } = await db
    .selectFrom('hidden_rentals')
    .select(sql<number | string | null>`sum(cost_uusd)`.as('spent'))
    .where('started_ms', '>=', sinceMs)
    .executeTakeFirstOrThrow();
  return Number(spent ?? 0);
}

export type Begun = Pick<
  HiddenRentalRow,
  'account' | 'request_json' | 'idempotency_key' | 'cost_uusd'
> & {
  started_ms: number;
};

/** Records the request before it is sent. */
export async function begin(db: StoreDb, id: string, begun: Begun): Promise<void> {
  await db.updateTable('hidden_rentals').set(begun).where('id', '=', id).execute();
}

export async function recordPod(db: StoreDb, id: string, podId: string): Promise<void> {
  await db.updateTable('hidden_rentals').set({ pod_id: podId }).where('id', '=', id).execute();
}

/** Records the result before the rental ends; it counts from the end on. */
export async function recordResult(db: StoreDb, id: string, resultJson: string): Promise<void> {
  await db
    .updateTable('hidden_rentals')
    .set({ result_json: resultJson })
    .where('id', '=', id)
    .execute();
}

export async function end(db: StoreDb, id: string, endedMs: number): Promise<void> {
  await db.updateTable('hidden_rentals').set({ ended_ms: endedMs }).where('id', '=', id).execute();
}

type Since = { executorId: string; endedMs: number; startedMs: number };

const lastSince = prepared((db, { executorId, endedMs, startedMs }: Slots<Since>) =>
  db
    .selectFrom('hidden_rentals')
    .select('result_json')
    .where('executor_id', '=', executorId)
    .where('ended_ms', '>=', endedMs)
    .where('started_ms', '>=', startedMs)
    .where('result_json', 'is not', null)
    .orderBy('ended_ms', 'desc')
    .limit(1),
);

/** The last result of a rental that began and ended since the times; null if there is none. */
export async function lastResult(
  db: StoreDb,
  executorId: string,
  { endedMs = 0, startedMs = 0 }: { endedMs?: number; startedMs?: number },
): Promise<string | null> {
  const { rows } = await lastSince(db, { executorId, endedMs, startedMs });
  return rows[0]?.result_json ?? null;
}

const MAX_OTHERS = 20;

/** The newest results of other executors since a time. */
export async function resultsOfOthers(
  db: StoreDb,
  executorId: string,
  sinceMs: number,
): Promise<string[]> {
  const rows = await db
    .selectFrom('hidden_rentals')
    .select('result_json')
    .where('executor_id', '!=', executorId)
    .where('started_ms', '>=', sinceMs)
    .where('result_json', 'is not', null)
    .orderBy('started_ms', 'desc')
    .limit(MAX_OTHERS)
    .execute();
  return rows.flatMap(({ result_json: result }) => result ?? []);
}

/** Makes a rental wait again whose request was refused, so that nothing was rented. */
export async function postpone(db: StoreDb, id: string, dueMs: number): Promise<void> {
  const waiting = { due_ms: dueMs, started_ms: null, cost_uusd: 0 };
  await db.updateTable('hidden_rentals').set(waiting).where('id', '=', id).execute();
}

/** Deletes rentals that ended before a time, and those that have waited since a time. */
export async function deleteOld(
  db: StoreDb,
  { endedBeforeMs, waitingSinceMs }: { endedBeforeMs: number; waitingSinceMs: number },
): Promise<void> {
  await db.deleteFrom('hidden_rentals').where('ended_ms', '<', endedBeforeMs).execute();
  await db
    .deleteFrom('hidden_rentals')
    .where('started_ms', 'is', null)
    .where('ended_ms', 'is', null)
    .where('due_ms', '<', waitingSinceMs)
    .execute();
}
