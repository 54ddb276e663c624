/** Queries of what the ledger knows of executors beside their evidence. */
import type { LedgerDb } from '../ledger/ledger.tables.ts';

export type Accepted = { executorId: string; listed: string; spec: string; gpuUuids: string[] };

/** Null before it passed under this record. */
export async function findAccepted(
  db: LedgerDb,
  executorId: string,
  listed: string,
): Promise<{ spec: string; gpu_uuids: string[] } | null> {
  const row = await db
    .selectFrom('accepted_specs')
    .select(['spec', 'gpu_uuids_json'])
    .where('executor_id', '=', executorId)
    .where('listed', '=', listed)
    .executeTakeFirst();
  if (row === undefined) return null;
  // Written by us.
  return { spec: row.spec, gpu_uuids: JSON.parse(row.gpu_uuids_json) as string[] };
}

/** Takes the place of what was accepted under another record; what stands under this one stays. */
export async function accept(db: LedgerDb, accepted: Accepted): Promise<void> {
  const { executorId, listed, spec, gpuUuids } = accepted;
  const values = { listed, spec, gpu_uuids_json: JSON.stringify(gpuUuids) };
  await db
    .insertInto('accepted_specs')
    .values({ executor_id: executorId, ...values })
    .onConflict((conflict) =>
      conflict
        .column('executor_id')
        .doUpdateSet(values)
        .where('accepted_specs.listed', '!=', listed),
    )
    .execute();
}

/** Of these cards those that others were seen with since `sinceMs`. */
export async function claimsOfOthers(
  db: LedgerDb,
  { executorId, uuids }: { executorId: string; uuids: readonly string[] },
  sinceMs: number,
): Promise<{ uuid: string; executor_id: string }[]> {
  if (uuids.length === 0) return [];
  return db
    .selectFrom('gpu_claims')
    .select(['uuid', 'executor_id'])
    .where('uuid', 'in', [...uuids])
    .where('executor_id', '!=', executorId)
    .where('seen_ms', '>=', sinceMs)
    .orderBy('uuid')
    .execute();
}

/** Cards that are nobody else's since `sinceMs` are this executor's from now on. */
export async function claim(
  db: LedgerDb,
  { executorId, uuids }: { executorId: string; uuids: readonly string[] },
  { nowMs, sinceMs }: { nowMs: number; sinceMs: number },
): Promise<void> {
  const own = { executor_id: executorId, seen_ms: nowMs };
  for (const uuid of new Set(uuids)) {
    await db
      .insertInto('gpu_claims')
      .values({ uuid, ...own })
      .onConflict((conflict) =>
        conflict
          .column('uuid')
          .doUpdateSet(own)
          .where((eb) =>
            eb.or([
              eb('gpu_claims.executor_id', '=', executorId),
              eb('gpu_claims.seen_ms', '<', sinceMs),
            ]),
          ),
      )
      .execute();
  }
}

/** What is remembered of single executors. */
const TABLES = ['gpu_claims', 'accepted_specs', 'lines'] as const;
/** Ids in one statement. */
const TOGETHER = 500;

/** Forgets every executor but these. */
export async function forgetOthers(db: LedgerDb, kept: ReadonlySet<string>): Promise<void> {
  for (const table of TABLES) {
    const rows = await db.selectFrom(table).select('executor_id').distinct().execute();
    const gone = rows.map((row) => row.executor_id).filter((id) => !kept.has(id));
    for (let from = 0; from < gone.length; from += TOGETHER) {
      const some = gone.slice(from, from + TOGETHER);
      await db.deleteFrom(table).where('executor_id', 'in', some).execute();
    }
  }
}

export function findProofTime(
  db: LedgerDb,
  processor: string,
): Promise<{ mean_ms: number; samples: number } | undefined> {
  return db
    .selectFrom('proof_times')
    .select(['mean_ms', 'samples'])
    .where('processor', '=', processor)
    .executeTakeFirst();
}

export async function keepProofTime(
  db: LedgerDb,
  row: { processor: string; mean_ms: number; samples: number },
): Promise<void> {
  const { mean_ms, samples } = row;
  await db
    .insertInto('proof_times')
    .values(row)
    .onConflict((conflict) => conflict.column('processor').doUpdateSet({ mean_ms, samples }))
    .execute();
}
