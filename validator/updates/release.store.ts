/** Queries of the agent's releases. */
import type { AgentReleaseRow, StoreDb } from '../store/tables.ts';

/** Number of retained releases. Older ones are deleted, and their digests count as never signed. */
const RETAINED = 200;

/** The release that agents should run now. */
export function newestRelease(db: StoreDb): Promise<AgentReleaseRow | undefined> {
  return db
    .selectFrom('agent_releases')
    .selectAll()
    .orderBy('sequence', 'desc')
    .limit(1)
    .executeTakeFirst();
}

/** Returns the newest releases, newest first. */
export function listReleases(db: StoreDb, limit: number): Promise<AgentReleaseRow[]> {
  return db
    .selectFrom('agent_releases')
    .selectAll()
    .orderBy('sequence', 'desc')
    .limit(limit)
    .execute();
}

/** Returns true if the tag ever had this digest. Rollbacks lead to such digests, too. */
export async function wasReleased(db: StoreDb, digest: string): Promise<boolean> {
  const found = db.selectFrom('agent_releases').select('sequence').where('digest', '=', digest);
  return (await found.limit(1).executeTakeFirst()) !== undefined;
}

/** Adds a release; adds nothing if another process has just stored the same sequence. */
export async function addRelease(tx: StoreDb, row: AgentReleaseRow): Promise<void> {
  await tx
    .insertInto('agent_releases')
    .values(row)
    .onConflict((conflict) => conflict.column('sequence').doNothing())
    .execute();
  await tx
    .deleteFrom('agent_releases')
    .where('sequence', '<=', row.sequence - RETAINED)
    .execute();
}

/** Changes the rollout of a release, not its digest. */
export async function setRelease(
  tx: StoreDb,
  sequence: number,
  change: Partial<
    Pick<AgentReleaseRow, 'rollout_permille' | 'since_ms' | 'min_sequence' | 'min_agent' | 'notes'>
  >,
): Promise<void> {
  await tx.updateTable('agent_releases').set(change).where('sequence', '=', sequence).execute();
}
