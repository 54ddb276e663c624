/** Queries of accepted specs and GPU claims of executors. */
import { sql } from 'kysely';
import { columnsFrom, idsJson, isListed, prepared, type Slots } from '../store/prepared.ts';
import type { AcceptedSpecsTable, GpuClaimRow, StoreDb } from '../store/tables.ts';

/** An executor with the UUIDs of its cards and the key of its agent. */
export type Claimant = {
  executorId: string;
  agentKey: string;
  uuids: readonly string[];
  /** Those of the cards whose possession its proofs of work show. */
  proven: ReadonlySet<string>;
};

/** Agent key of claims that were stored before claims had a key. */
export const UNKNOWN_KEY = '';

export type Accepted = {
  executorId: string;
  listed: string;
  spec: string;
  gpuUuids: string[];
  /** True: replaces the spec of the same listing too. */
  replaces: boolean;
};

const acceptedOf = prepared((db, key: Slots<{ executorId: string; listed: string }>) =>
  db
    .selectFrom('accepted_specs')
    .select(['spec', 'gpu_uuids_json'])
    .where('executor_id', '=', key.executorId)
    .where('listed', '=', key.listed),
);

/** Returns the accepted spec; null until the executor has passed with its current listing. */
export async function findAccepted(
  db: StoreDb,
  executorId: string,
  listed: string,
): Promise<{ spec: string; gpu_uuids: string[] } | null> {
  const { rows } = await acceptedOf(db, { executorId, listed });
  const [row] = rows;
  if (row === undefined) return null;
  return { spec: row.spec, gpu_uuids: JSON.parse(row.gpu_uuids_json) as string[] };
}

const acceptSpec = (replaces: boolean) =>
  prepared((db, spec: Slots<AcceptedSpecsTable>) => {
    const values = columnsFrom(spec, ['listed', 'spec', 'gpu_uuids_json']);
    return db
      .insertInto('accepted_specs')
      .values({ executor_id: spec.executor_id, ...values })
      .onConflict((conflict) => {
        const update = conflict.column('executor_id').doUpdateSet(values);
        return replaces ? update : update.where('accepted_specs.listed', '!=', spec.listed);
      });
  });
const replaceSpec = acceptSpec(true);
const keepSpec = acceptSpec(false);

/** Stores the accepted spec. Replaces a spec of another listing; one of the same listing only if `replaces` is true. */
export async function accept(db: StoreDb, accepted: Accepted): Promise<void> {
  const { executorId, listed, spec, gpuUuids, replaces } = accepted;
  const gpu_uuids_json = JSON.stringify(gpuUuids);
  const store = replaces ? replaceSpec : keepSpec;
  await store(db, { executor_id: executorId, listed, spec, gpu_uuids_json });
}

const onCards = prepared((db, { uuids }: Slots<{ uuids: string }>) =>
  db
    .selectFrom('gpu_claims')
    .selectAll()
    .where(isListed(db, sql.ref('uuid'), uuids))
    .orderBy('uuid'),
);

/** Claims of all executors on these cards. */
export async function claimsOn(db: StoreDb, uuids: readonly string[]): Promise<GpuClaimRow[]> {
  if (uuids.length === 0) return [];
  return (await onCards(db, { uuids: idsJson(uuids) })).rows;
}

const claimCard = prepared((db, claim: Slots<Omit<GpuClaimRow, 'first_ms'>>) => {
  const own = columnsFrom(claim, ['agent_key', 'seen_ms', 'is_proven']);
  return db
    .insertInto('gpu_claims')
    .values({
      ...columnsFrom(claim, ['uuid', 'executor_id']),
      first_ms: claim.seen_ms,
      ...own,
    })
    .onConflict((conflict) =>
      conflict.columns(['uuid', 'executor_id']).doUpdateSet((eb) => ({
        ...own,
        first_ms: eb
          .case()
          .when('gpu_claims.agent_key', 'in', [claim.agent_key, eb.val(UNKNOWN_KEY)])
          .then(eb.ref('gpu_claims.first_ms'))
          .else(claim.seen_ms)
          .end(),
      })),
    );
});

const forget = prepared((db, { beforeMs }: Slots<{ beforeMs: number }>) =>
  db.deleteFrom('gpu_claims').where('seen_ms', '<', beforeMs),
);

/** Claims the cards for an executor that passed. If its agent's key changed, the claims begin now. */
export async function claim(
  db: StoreDb,
  { executorId, agentKey, uuids, proven }: Claimant,
  { nowMs, forgetMs }: { nowMs: number; forgetMs: number },
): Promise<void> {
  for (const uuid of new Set(uuids)) {
    const is_proven: 0 | 1 = proven.has(uuid) ? 1 : 0;
    const own = { agent_key: agentKey, seen_ms: nowMs, is_proven };
    await claimCard(db, { uuid, executor_id: executorId, ...own });
  }
  await forget(db, { beforeMs: forgetMs });
}

/** Tables whose rows belong to one executor each. */
const TABLES = ['gpu_claims', 'accepted_specs', 'lines'] as const;
/** Maximum number of executor ids per statement. */
const BATCH = 500;

/** Deletes the rows of every executor except `kept`. */
export async function deleteOthers(db: StoreDb, kept: ReadonlySet<string>): Promise<void> {
  for (const table of TABLES) {
    const rows = await db.selectFrom(table).select('executor_id').distinct().execute();
    const removed = rows.map((row) => row.executor_id).filter((id) => !kept.has(id));
    for (let from = 0; from < removed.length; from += BATCH) {
      const batch = removed.slice(from, from + BATCH);
      await db.deleteFrom(table).where('executor_id', 'in', batch).execute();
    }
  }
}
