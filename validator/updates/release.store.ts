/** Queries of the agent's releases. */
import type { AgentReleaseRow, StoreDb } from '../store/tables.ts';

/** More are forgotten: whoever runs an older one runs none that is known. */
const KEPT = 200;

/** What agents are to run now. */
export function newestRelease(db: StoreDb): Promise<AgentReleaseRow | undefined> {
  return db
    .selectFrom('agent_releases')
    .selectAll()
    .orderBy('sequence', 'desc')
    .limit(1)
    .executeTakeFirst();
}

/** The newest first. */
export function listReleases(db: StoreDb, limit: number): Promise<AgentReleaseRow[]> {
  return db
    .selectFrom('agent_releases')
    .selectAll()
    .orderBy('sequence', 'desc')
    .limit(limit)
    .execute();
}

/** As a digest of the tag; going back leads to one of those, too. */
export async function wasReleased(db: StoreDb, digest: string): Promise<boolean> {
  const found = db.selectFrom('agent_releases').select('sequence').where('digest', '=', digest);
  return (await found.limit(1).executeTakeFirst()) !== undefined;
}

/** Where the sequence is taken, by another process just now, nothing is added. */
export async function addRelease(tx: StoreDb, row: AgentReleaseRow): Promise<void> {
  await tx
    .insertInto('agent_releases')
    .values(row)
    .onConflict((conflict) => conflict.column('sequence').doNothing())
    .execute();
  await tx
    .deleteFrom('agent_releases')
    .where('sequence', '<=', row.sequence - KEPT)
    .execute();
}

/** How a release is given out, the release itself staying what it is. */
export async function setRelease(
  tx: StoreDb,
  sequence: number,
  change: Partial<
    Pick<AgentReleaseRow, 'rollout_permille' | 'since_ms' | 'min_sequence' | 'min_agent' | 'notes'>
  >,
): Promise<void> {
  await tx.updateTable('agent_releases').set(change).where('sequence', '=', sequence).execute();
}
