/** Queries of the bookmarks table. */
import type { Bookmark, Db } from '../../platform/database/tables.ts';

/** Inserts a bookmark. Has no effect if the account has already bookmarked the node. */
export async function insertBookmark(db: Db, row: Bookmark): Promise<void> {
  await db
    .insertInto('bookmarks')
    .values(row)
    .onConflict((conflict) => conflict.columns(['account_id', 'executor_id']).doNothing())
    .execute();
}

/** Lists an account's bookmarks, oldest first. */
export function listBookmarks(db: Db, accountId: string): Promise<Bookmark[]> {
  return db
    .selectFrom('bookmarks')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('created_at')
    .orderBy('id')
    .execute();
}

/** Lists the ids of an account's bookmarked nodes, unordered. */
export async function listBookmarkedNodes(db: Db, accountId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('bookmarks')
    .select('executor_id')
    .where('account_id', '=', accountId)
    .execute();
  return rows.map(({ executor_id: nodeId }) => nodeId);
}

/** Deletes a bookmark. Has no effect if it does not exist. */
export async function deleteBookmark(db: Db, accountId: string, executorId: string): Promise<void> {
  await db
    .deleteFrom('bookmarks')
    .where('account_id', '=', accountId)
    .where('executor_id', '=', executorId)
    .execute();
}

export async function deleteBookmarksOf(db: Db, accountId: string): Promise<void> {
  await db.deleteFrom('bookmarks').where('account_id', '=', accountId).execute();
}
