/** Queries of the bookmarks table. */
import type { Bookmark, Db } from '../../platform/database/tables.ts';

/** Stores one; does nothing when the account has one of that node. */
export async function insertBookmark(db: Db, row: Bookmark): Promise<void> {
  await db
    .insertInto('bookmarks')
    .values(row)
    .onConflict((conflict) => conflict.columns(['account_id', 'executor_id']).doNothing())
    .execute();
}

/** Oldest first. */
export function listBookmarks(db: Db, accountId: string): Promise<Bookmark[]> {
  return db
    .selectFrom('bookmarks')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('created_at')
    .orderBy('id')
    .execute();
}

/** Their nodes, in no order. */
export async function listBookmarkedNodes(db: Db, accountId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('bookmarks')
    .select('executor_id')
    .where('account_id', '=', accountId)
    .execute();
  return rows.map(({ executor_id: nodeId }) => nodeId);
}

/** Absent ones count as removed. */
export async function deleteBookmark(db: Db, accountId: string, executorId: string): Promise<void> {
  await db
    .deleteFrom('bookmarks')
    .where('account_id', '=', accountId)
    .where('executor_id', '=', executorId)
    .execute();
}

/** Removes every one of an account. */
export async function deleteBookmarksOf(db: Db, accountId: string): Promise<void> {
  await db.deleteFrom('bookmarks').where('account_id', '=', accountId).execute();
}
