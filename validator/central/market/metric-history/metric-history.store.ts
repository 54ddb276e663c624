/** All queries on metric_history and metric_collections. */
import { sql } from 'kysely';
import { isPostgres } from '../../../database/engine.ts';
import {
  idsJson,
  isAmong,
  isAmongJoined,
  jsonRows,
  prepared,
  type Slots,
} from '../../platform/database/prepared.ts';
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

const enter = prepared((db, { executorId }: Slots<{ executorId: string }>) =>
  db
    .insertInto('metric_collections')
    .values({ executor_id: executorId, due_at: 0, failures: 0 })
    .onConflict((conflict) => conflict.column('executor_id').doNothing()),
);

/**
 * Adds an entry, due at once, unless there is one. Call it in the transaction that stores the executor's measurement:
 * the agent of an unchecked executor is not called, because its address is not verified.
 */
export async function enterCollections(tx: Db, executorId: string): Promise<void> {
  await enter(tx, { executorId });
}

/**
 * Claims due executors, longest overdue first, by postponing them to `untilMs`. Deletes the due entries of removed
 * executors.
 */
export async function claimCollections(
  tx: Db,
  options: { nowMs: number; untilMs: number; failing: boolean; limit: number },
): Promise<{ claims: Claim[]; isFull: boolean }> {
  const { nowMs, untilMs, failing, limit } = options;
  const rows = await tx
    .selectFrom('metric_collections')
    .leftJoin('executors', 'executors.id', 'metric_collections.executor_id')
    .selectAll('metric_collections')
    .select('executors.state')
    .where('due_at', '<=', nowMs)
    .where('failures', failing ? '>' : '=', 0)
    .orderBy('due_at')
    .limit(limit)
    .$if(isPostgres(tx), (query) => query.forUpdate('metric_collections').skipLocked())
    .execute();
  const present = rows.filter(({ state }) => state !== null && state !== 'removed');
  const isPresent = new Set(present.map((row) => row.executor_id));
  const removed = rows.map((row) => row.executor_id).filter((id) => !isPresent.has(id));
  if (removed.length > 0)
    await tx.deleteFrom('metric_collections').where('executor_id', 'in', removed).execute();
  if (present.length > 0) {
    await tx
      .updateTable('metric_collections')
      .set({ due_at: untilMs })
      .where('executor_id', 'in', [...isPresent])
      .execute();
  }
  const claims = present.map((row) => ({
    executorId: row.executor_id,
    dueAtMs: untilMs,
    failures: row.failures,
    cursor: cursorOf(row),
  }));
  return { claims, isFull: rows.length === limit };
}

const NO_CURSOR = { epoch: null, tick: null, shift: null };

/** Outcome of a collection, with the history to store. */
export type Outcome = {
  claim: Claim;
  /** Time of the next collection. */
  dueAtMs: number;
  failures: number;
  cursor: Cursor | null;
  rows: readonly PartRow[];
};

/** Ends claims and stores their history, except claims that another process has taken over in the meantime. */
export async function releaseCollections(tx: Db, outcomes: readonly Outcome[]): Promise<void> {
  if (outcomes.length === 0) return;
  const given = outcomes.map(({ claim, dueAtMs, failures, cursor }) => ({
    id: claim.executorId,
    claimed: claim.dueAtMs,
    next_at: dueAtMs,
    failed: failures,
    ...(cursor ?? NO_CURSOR),
  }));
  const rows = jsonRows(tx, sql`${JSON.stringify(given)}`, {
    id: 'text',
    claimed: 'bigint',
    next_at: 'bigint',
    failed: 'bigint',
    epoch: 'text',
    tick: 'bigint',
    shift: 'bigint',
  });
  const released = await tx
    .updateTable('metric_collections')
    .from(rows.as('outcome'))
    .set({
      due_at: sql<number>`outcome.next_at`,
      failures: sql<number>`outcome.failed`,
      epoch: sql<string | null>`outcome.epoch`,
      tick: sql<number | null>`outcome.tick`,
      shift: sql<number | null>`outcome.shift`,
    })
    .where(
      isAmongJoined(
        tx,
        'metric_collections.executor_id',
        sql`${idsJson(given.map(({ id }) => id))}`,
      ),
    )
    .whereRef('metric_collections.executor_id', '=', 'outcome.id')
    .whereRef('metric_collections.due_at', '=', 'outcome.claimed')
    .returning('metric_collections.executor_id')
    .execute();
  const ids = new Set(released.map((row) => row.executor_id));
  const stored = outcomes.filter(({ claim }) => ids.has(claim.executorId));
  await putParts(
    tx,
    stored.flatMap((outcome) => outcome.rows),
  );
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

/**
 * Ids by executor of the pods that have not ended or that ended after `endedSinceMs`, except pods of removed accounts.
 */
export async function listCollectedPods(
  db: Db,
  executorIds: readonly string[],
  endedSinceMs: number,
): Promise<Map<string, Set<string>>> {
  const byExecutor = new Map(executorIds.map((id) => [id, new Set<string>()]));
  if (executorIds.length === 0) return byExecutor;
  const rows = await db
    .selectFrom('pods')
    .select(['id', 'executor_id'])
    .where(isAmong(db, 'executor_id', sql`${idsJson(executorIds)}`))
    .where((eb) => eb.or([eb('ended_at', 'is', null), eb('ended_at', '>', endedSinceMs)]))
    // A join with the accounts may begin at an account that has most of the market's pods.
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom('accounts')
            .select('accounts.id')
            .whereRef('accounts.id', '=', 'pods.account_id')
            .where('accounts.deleted_at', 'is not', null),
        ),
      ),
    )
    .execute();
  for (const row of rows) byExecutor.get(row.executor_id)?.add(row.id);
  return byExecutor;
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
