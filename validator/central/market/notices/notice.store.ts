/** All queries on notices, and on the nodes' copy of the one that stands. */
import type { Db, Notice } from '../../platform/database/tables.ts';
import { type NoticeState, STANDING_STATES, sourcesOf } from './notice.state.ts';

/** Stores a new one. */
export async function insertNotice(tx: Db, row: Notice): Promise<void> {
  await tx.insertInto('notices').values(row).execute();
}

/** In whatever state. */
export function findNotice(db: Db, id: string): Promise<Notice | undefined> {
  return db.selectFrom('notices').selectAll().where('id', '=', id).executeTakeFirst();
}

/** The node's that is open or under way; there is at most one. */
export function findStanding(db: Db, executorId: string): Promise<Notice | undefined> {
  return db
    .selectFrom('notices')
    .selectAll()
    .where('executor_id', '=', executorId)
    .where('state', 'in', STANDING_STATES)
    .executeTakeFirst();
}

/** How many were announced of the node since then. */
export async function countSince(db: Db, executorId: string, sinceMs: number): Promise<number> {
  const row = await db
    .selectFrom('notices')
    .select((eb) => eb.fn.countAll<number>().as('n'))
    .where('executor_id', '=', executorId)
    .where('created_at', '>', sinceMs)
    .executeTakeFirstOrThrow();
  return row.n;
}

/** Makes a move of the state table; false when it is in no state to make it from. */
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

/** The latest maintenance of the node that began by then and was not cancelled. */
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
