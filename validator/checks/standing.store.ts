/** Queries of what the ledger knows of executors beside their evidence. */
import type { GpuClaimRow, StoreDb } from '../store/tables.ts';
import { type Claimant, UNKNOWN_KEY } from './standing.state.ts';

export type Accepted = { executorId: string; listed: string; spec: string; gpuUuids: string[] };

/** Null before it passed under this record. */
export async function findAccepted(
  db: StoreDb,
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
export async function accept(db: StoreDb, accepted: Accepted): Promise<void> {
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

/** Everybody's claims on these cards. */
export async function claimsOn(db: StoreDb, uuids: readonly string[]): Promise<GpuClaimRow[]> {
  if (uuids.length === 0) return [];
  return db
    .selectFrom('gpu_claims')
    .selectAll()
    .where('uuid', 'in', [...uuids])
    .orderBy('uuid')
    .execute();
}

/** Of an executor that passed with these cards. Under another key than before its claims begin anew. */
export async function claim(
  db: StoreDb,
  { executorId, agentKey, uuids }: Claimant,
  { nowMs, forgetMs }: { nowMs: number; forgetMs: number },
): Promise<void> {
  const own = { agent_key: agentKey, seen_ms: nowMs };
  for (const uuid of new Set(uuids)) {
    await db
      .insertInto('gpu_claims')
      .values({ uuid, executor_id: executorId, first_ms: nowMs, ...own })
      .onConflict((conflict) =>
        conflict.columns(['uuid', 'executor_id']).doUpdateSet((eb) => ({
          ...own,
          first_ms: eb
            .case()
            .when('gpu_claims.agent_key', 'in', [agentKey, UNKNOWN_KEY])
            .then(eb.ref('gpu_claims.first_ms'))
            .else(nowMs)
            .end(),
        })),
      )
      .execute();
  }
  await db.deleteFrom('gpu_claims').where('seen_ms', '<', forgetMs).execute();
}

/** What is remembered of single executors. */
const TABLES = ['gpu_claims', 'accepted_specs', 'lines'] as const;
/** Ids in one statement. */
const TOGETHER = 500;

/** Forgets every executor but these. */
export async function forgetOthers(db: StoreDb, kept: ReadonlySet<string>): Promise<void> {
  for (const table of TABLES) {
    const rows = await db.selectFrom(table).select('executor_id').distinct().execute();
    const gone = rows.map((row) => row.executor_id).filter((id) => !kept.has(id));
    for (let from = 0; from < gone.length; from += TOGETHER) {
      const some = gone.slice(from, from + TOGETHER);
      await db.deleteFrom(table).where('executor_id', 'in', some).execute();
    }
  }
}
