/** Queries of the notices table. */
import type { Db, Notice } from '../../platform/database/tables.ts';
import { ACTIVE_STATES, type NoticeState, sourcesOf } from './notice.state.ts';

export async function insertNotice(tx: Db, row: Notice): Promise<void> {
  await tx.insertInto('notices').values(row).execute();
}

export function findNotice(db: Db, id: string): Promise<Notice | undefined> {
  return db.selectFrom('notices').selectAll().where('id', '=', id).executeTakeFirst();
}

/** Finds the node's open or started notice; there is at most one. */
export function findActive(db: Db, executorId: string): Promise<Notice | undefined> {
  return db
    .selectFrom('notices')
    .selectAll()
    .where('executor_id', '=', executorId)
    .where('state', 'in', ACTIVE_STATES)
    .executeTakeFirst();
}

/** Counts the node's notices announced after `sinceMs`. */
export async function countSince(db: Db, executorId: string, sinceMs: number): Promise<number> {
  const row = await db
    .selectFrom('notices')
    .select((eb) => eb.fn.countAll<number>().as('n'))
    .where('executor_id', '=', executorId)
    .where('created_at', '>', sinceMs)
    .executeTakeFirstOrThrow();
  return row.n;
}

/** Changes the state and returns true; returns false if the transition is not permitted. */
export async function moveNotice(
  tx: Db,
  id: string,
  to: NoticeState,
  nowMs: number,
): Promise<boolean> {
  const done = await tx
    .updateTable('notices')
    .set({ state: to, updated_at: nowMs })
    .where('id', '=', id)
    .where('state', 'in', sourcesOf(to))
    .executeTakeFirst();
  return done.numUpdatedRows > 0n;
}

/** Finds the node's latest maintenance that was due to start by `atMs` and was not cancelled. */
export function findMaintenance(
  db: Db,
  executorId: string,
  atMs: number,
): Promise<Notice | undefined> {
  return db
    .selectFrom('notices')
    .selectAll()
    .where('executor_id', '=', executorId)
    .where('start_at', '<=', atMs)
    .where('permanent', '=', 0)
    .where('state', '<>', 'cancelled')
    .orderBy('start_at', 'desc')
    .limit(1)
    .executeTakeFirst();
}

/** Start of each node's latest maintenance that began from `sinceMs` to `atMs` and was not cancelled, by node. */
export async function listMaintenanceStarts(
  db: Db,
  { sinceMs, atMs }: { sinceMs: number; atMs: number },
): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('notices')
    .select((eb) => ['executor_id', eb.fn.max('start_at').as('start_at')])
    .where('start_at', '>=', sinceMs)
    .where('start_at', '<=', atMs)
    .where('permanent', '=', 0)
    .where('state', '<>', 'cancelled')
    .groupBy('executor_id')
    .execute();
  return new Map(rows.map((row) => [row.executor_id, Number(row.start_at)]));
}
