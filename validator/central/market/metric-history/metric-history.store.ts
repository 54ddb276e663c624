/** All queries on metric_history and metric_collections. */
import { isPostgres } from '../../../database/engine.ts';
import type { MetricHistoryTable } from '../../platform/database/tables/metrics.ts';
import type { Db } from '../../platform/database/tables.ts';

export type Part = MetricHistoryTable['part'];
export const RECENT: Part = 0;
export const ARCHIVE: Part = 1;

/** Maximum number of pods and nodes whose history one sweep deletes because of its age. */
const MAX_SWEPT = 1_000;
/** Maximum duration of a collection that began before its account was removed. */
const REMOVED_SINCE_MS = 86_400_000;

/** Progress of the collection from an executor. */
export type Cursor = { epoch: string; tick: number; shift: number };
/** A collection that this process may run now. */
export type Claim = {
  executorId: string;
  dueAtMs: number;
  failures: number;
  /** Null before the first answer of the agent. */
  cursor: Cursor | null;
};

type CollectionRow = {
  executor_id: string;
  epoch: string | null;
  tick: number | null;
  shift: number | null;
};

function cursorOf({ epoch, tick, shift }: CollectionRow): Cursor | null {
  return epoch === null || tick === null || shift === null ? null : { epoch, tick, shift };
}

/** Adds entries, due at once, for measured executors that have none, and deletes the entries of removed executors. */
export async function alignCollections(db: Db): Promise<void> {
  await db
    .deleteFrom('metric_collections')
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom('executors')
            .select('executors.id')
            .whereRef('executors.id', '=', 'metric_collections.executor_id')
            .where('executors.state', '!=', 'removed'),
        ),
      ),
    )
    .execute();
  await db
    .insertInto('metric_collections')
    .columns(['executor_id', 'due_at', 'failures'])
    .expression(
      db
        .selectFrom('executors')
        .select((eb) => ['executors.id', eb.lit(0).as('due_at'), eb.lit(0).as('failures')])
        .where('executors.state', '!=', 'removed')
        // The agent of an unchecked node is not called, because its address is not verified.
        .where('executors.inventory_json', 'is not', null)
        .where((eb) =>
          eb.not(
            eb.exists(
              eb
                .selectFrom('metric_collections')
                .select('metric_collections.executor_id')
                .whereRef('metric_collections.executor_id', '=', 'executors.id'),
            ),
          ),
        ),
    )
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Claims due executors, longest overdue first, by postponing them to `untilMs`. */
export async function claimCollections(
  tx: Db,
  options: { nowMs: number; untilMs: number; failing: boolean; limit: number },
): Promise<Claim[]> {
  const { nowMs, untilMs, failing, limit } = options;
  const rows = await tx
    .selectFrom('metric_collections')
    .selectAll()
    .where('due_at', '<=', nowMs)
    .where('failures', failing ? '>' : '=', 0)
    .orderBy('due_at')
    .limit(limit)
    .$if(isPostgres(tx), (query) => query.forUpdate().skipLocked())
    .execute();
  if (rows.length === 0) return [];
  const ids = rows.map((row) => row.executor_id);
  await tx
    .updateTable('metric_collections')
    .set({ due_at: untilMs })
    .where('executor_id', 'in', ids)
    .execute();
  return rows.map((row) => ({
    executorId: row.executor_id,
    dueAtMs: untilMs,
    failures: row.failures,
    cursor: cursorOf(row),
  }));
}

/** Records the outcome of a claim. Returns false if another process has claimed the executor in the meantime. */
export async function releaseCollection(
  db: Db,
  { executorId, dueAtMs }: Claim,
  outcome: { dueAtMs: number; failures: number; cursor: Cursor | null },
): Promise<boolean> {
  const { cursor } = outcome;
  const changed = await db
    .updateTable('metric_collections')
    .set({ due_at: outcome.dueAtMs, failures: outcome.failures, ...cursor })
    .where('executor_id', '=', executorId)
    .where('due_at', '=', dueAtMs)
    .executeTakeFirst();
  return changed.numUpdatedRows > 0n;
}

/** Returns null if nothing was collected yet. */
export async function findCursor(db: Db, executorId: string): Promise<Cursor | null> {
  const row = await db
    .selectFrom('metric_collections')
    .select(['executor_id', 'epoch', 'tick', 'shift'])
    .where('executor_id', '=', executorId)
    .executeTakeFirst();
  return row === undefined ? null : cursorOf(row);
}

/** Pods of the executor that have not ended or that ended after `endedSinceMs`, except pods of removed accounts. */
export async function listCollectedPods(
  db: Db,
  executorId: string,
  endedSinceMs: number,
): Promise<string[]> {
  const rows = await db
    .selectFrom('pods')
    .innerJoin('accounts', 'accounts.id', 'pods.account_id')
    .select('pods.id')
    .where('pods.executor_id', '=', executorId)
    .where('accounts.deleted_at', 'is', null)
    .where((eb) => eb.or([eb('pods.ended_at', 'is', null), eb('pods.ended_at', '>', endedSinceMs)]))
    .execute();
  return rows.map((row) => row.id);
}

/** Stored bytes by owner. Owners without stored bytes are missing. */
export async function readParts(
  db: Db,
  ownerIds: readonly string[],
  part: Part,
): Promise<Map<string, Uint8Array>> {
  if (ownerIds.length === 0) return new Map();
  const rows = await db
    .selectFrom('metric_history')
    .select(['owner_id', 'data'])
    .where('owner_id', 'in', ownerIds)
    .where('part', '=', part)
    .execute();
  return new Map(rows.map((row) => [row.owner_id, row.data]));
}

export type PartRow = { ownerId: string; part: Part; newestDay: number; data: Uint8Array };

/** Inserts or replaces all rows in one statement. */
export async function putParts(tx: Db, rows: readonly PartRow[]): Promise<void> {
  if (rows.length === 0) return;
  await tx
    .insertInto('metric_history')
    .values(
      rows.map(({ ownerId, part, newestDay, data }) => ({
        owner_id: ownerId,
        part,
        newest_day: newestDay,
        data,
      })),
    )
    .onConflict((conflict) =>
      conflict.columns(['owner_id', 'part']).doUpdateSet((eb) => ({
        newest_day: eb.ref('excluded.newest_day'),
        data: eb.ref('excluded.data'),
      })),
    )
    .execute();
}

/** Deletes the history of all pods of an account. */
export async function deleteHistoryOf(tx: Db, accountId: string): Promise<void> {
  await tx
    .deleteFrom('metric_history')
    .where('owner_id', 'in', (eb) =>
      eb.selectFrom('pods').select('pods.id').where('pods.account_id', '=', accountId),
    )
    .execute();
}

/**
 * Deletes history whose newest sample was taken before `day`, and history that a collection wrote while its account was
 * being removed.
 */
export async function sweepHistory(tx: Db, { day, nowMs }: { day: number; nowMs: number }) {
  await tx
    .deleteFrom('metric_history')
    .where('owner_id', 'in', (eb) =>
      eb
        .selectFrom('metric_history as old')
        .select('old.owner_id')
        .where('old.newest_day', '<', day)
        .where('old.part', '=', RECENT)
        .limit(MAX_SWEPT),
    )
    .execute();
  await tx
    .deleteFrom('metric_history')
    .where('owner_id', 'in', (eb) =>
      eb
        .selectFrom('pods')
        .innerJoin('accounts', 'accounts.id', 'pods.account_id')
        .select('pods.id')
        .where('accounts.deleted_at', '>', nowMs - REMOVED_SINCE_MS),
    )
    .execute();
}
