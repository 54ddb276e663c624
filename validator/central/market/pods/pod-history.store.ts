/** Queries on pods that have ended. */
import type { Db, Pod } from '../../platform/database/tables.ts';

/** An account's pods that have ended, the latest end first. */
export async function listEnded(
  db: Db,
  accountId: string,
  { offset, limit }: { offset: number; limit: number },
): Promise<Pod[]> {
  return db
    .selectFrom('pods')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('ended_at', 'is not', null)
    .orderBy('ended_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .offset(offset)
    .execute();
}

/** How many those are. */
export async function countEnded(db: Db, accountId: string): Promise<number> {
  const row = await db
    .selectFrom('pods')
    .select((select) => select.fn.countAll<number>().as('count'))
    .where('account_id', '=', accountId)
    .where('ended_at', 'is not', null)
    .executeTakeFirstOrThrow();
  return Number(row.count);
}
