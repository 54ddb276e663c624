/** Queries of the heads of chains. */
import type { EvidenceHeadRow, LedgerDb } from '../store/ledger.tables.ts';

export function findHead(db: LedgerDb, executorId: string): Promise<EvidenceHeadRow | undefined> {
  return db
    .selectFrom('evidence_heads')
    .selectAll()
    .where('executor_id', '=', executorId)
    .executeTakeFirst();
}

/** In place of `before`. Throws where another process has changed it meanwhile: what goes with it is not to be kept. */
export async function putHead(
  tx: LedgerDb,
  row: EvidenceHeadRow,
  before: EvidenceHeadRow | undefined,
): Promise<void> {
  if (before === undefined) {
    await tx.insertInto('evidence_heads').values(row).execute();
    return;
  }
  const { numUpdatedRows } = await tx
    .updateTable('evidence_heads')
    .set(row)
    .where('executor_id', '=', row.executor_id)
    .where('signature', '=', before.signature)
    .executeTakeFirst();
  if (numUpdatedRows !== 1n) {
    throw new Error(`another process has written evidence of ${row.executor_id} meanwhile`);
  }
}

/** Of chains whose last document was taken away before `beforeMs`. */
export async function forgetHeads(db: LedgerDb, beforeMs: number): Promise<void> {
  await db
    .deleteFrom('evidence_heads')
    .where('pruned_ms', '<', beforeMs)
    .whereRef('first_seq', '>', 'last_seq')
    .execute();
}
