/** Queries on pods for what falls due by time alone. */
import { isPostgres } from '../../database/engine.ts';
import type { Db, Pod } from '../db/tables.ts';

/** When a scheduled removal is due, and when its next warning is (pods/removal-warnings.ts). */
export type DueColumn = 'removal_at' | 'removal_warning_at';

/** Whether any pod is due, of those that nobody has asked to remove. Reads none of them. */
export async function isAnyDue(db: Db, column: DueColumn, nowMs: number): Promise<boolean> {
  return (await due(db, column, nowMs).select('id').limit(1).executeTakeFirst()) !== undefined;
}

/** Those pods, held until the transaction ends; ones that another transaction holds are passed over. */
export async function takeDue(
  tx: Db,
  column: DueColumn,
  { nowMs, limit }: { nowMs: number; limit: number },
): Promise<Pod[]> {
  return due(tx, column, nowMs)
    .selectAll()
    .orderBy(column)
    .limit(limit)
    .$if(isPostgres(tx), (query) => query.forUpdate().skipLocked())
    .execute();
}

function due(db: Db, column: DueColumn, nowMs: number) {
  return db
    .selectFrom('pods')
    .where(column, '<=', nowMs)
    .where('ended_at', 'is', null)
    .where('delete_requested_at', 'is', null);
}

/** Failed creations that failed at or before `failedUntilMs` and of which nothing is left on the node. */
export async function listSettledFailures(
  db: Db,
  failedUntilMs: number,
  limit: number,
): Promise<string[]> {
  const rows = await db
    .selectFrom('pods')
    .select('id')
    .where('state', '=', 'creation_failed')
    .where('phase', '=', '')
    .where('delete_requested_at', '<=', failedUntilMs)
    .where('ended_at', 'is', null)
    .limit(limit)
    .execute();
  return rows.map(({ id }) => id);
}
