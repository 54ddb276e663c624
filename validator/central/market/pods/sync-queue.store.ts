/** All queries on sync_turns, the table of the queue that the pod sync of all processes shares. */
import type { ExpressionBuilder } from 'kysely';
import { isPostgres } from '../../../database/engine.ts';
import type { Db, Tables } from '../../platform/database/tables.ts';

/** An executor that a process is syncing. */
export type Claim = {
  executorId: string;
  /** Consecutive passes without an answer. */
  failures: number;
};

/** Matches executors with copies of volumes, or with pods that have not ended or that ended after `endedSinceMs`. */
function isBusy(endedSinceMs: number) {
  return (eb: ExpressionBuilder<Tables, 'sync_turns'>) =>
    eb.or([
      eb.exists(
        eb
          .selectFrom('pods')
          .select('pods.id')
          .whereRef('pods.executor_id', '=', 'sync_turns.executor_id')
          .where((pod) =>
            pod.or([pod('pods.ended_at', 'is', null), pod('pods.ended_at', '>', endedSinceMs)]),
          ),
      ),
      eb.exists(
        eb
          .selectFrom('volume_copies')
          .select('volume_copies.id')
          .whereRef('volume_copies.executor_id', '=', 'sync_turns.executor_id'),
      ),
    ]);
}

/** Adds busy executors that have no entry yet, due at once. */
export async function addEntries(db: Db, endedSinceMs: number): Promise<void> {
  await db
    .insertInto('sync_turns')
    .columns(['executor_id', 'due_at', 'failures', 'woken'])
    .expression(
      db
        .selectFrom('executors')
        .select((eb) => [
          'executors.id',
          eb.lit(0).as('due_at'),
          eb.lit(0).as('failures'),
          eb.lit(0).as('woken'),
        ])
        .where((eb) =>
          eb.or([
            eb.exists(
              eb
                .selectFrom('pods')
                .select('pods.id')
                .whereRef('pods.executor_id', '=', 'executors.id')
                .where((pod) =>
                  pod.or([
                    pod('pods.ended_at', 'is', null),
                    pod('pods.ended_at', '>', endedSinceMs),
                  ]),
                ),
            ),
            eb.exists(
              eb
                .selectFrom('volume_copies')
                .select('volume_copies.id')
                .whereRef('volume_copies.executor_id', '=', 'executors.id'),
            ),
          ]),
        )
        .where((eb) =>
          eb.not(
            eb.exists(
              eb
                .selectFrom('sync_turns')
                .select('sync_turns.executor_id')
                .whereRef('sync_turns.executor_id', '=', 'executors.id'),
            ),
          ),
        ),
    )
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

export type DueFilter = {
  nowMs: number;
  endedSinceMs: number;
  /** Boot ids of other living processes, whose claims remain valid. */
  others: readonly string[];
  /** Executors that this process has claimed. */
  running: readonly string[];
  /** True selects executors that did not answer the last time; false selects executors that did. */
  failing: boolean;
  limit: number;
};

/** Due executors that are not claimed. Rows that another transaction has locked are skipped. */
export async function listDueEntries(tx: Db, filter: DueFilter): Promise<Claim[]> {
  const { nowMs, endedSinceMs, others, running, failing, limit } = filter;
  const rows = await tx
    .selectFrom('sync_turns')
    .select(['executor_id', 'failures'])
    .where('due_at', '<=', nowMs)
    .where('failures', failing ? '>' : '=', 0)
    .where(isBusy(endedSinceMs))
    .$if(running.length > 0, (query) => query.where('executor_id', 'not in', running))
    .$if(others.length > 0, (query) =>
      query.where((eb) => eb.or([eb('boot_id', 'is', null), eb('boot_id', 'not in', others)])),
    )
    .orderBy('due_at')
    .limit(limit)
    .$if(isPostgres(tx), (query) => query.forUpdate().skipLocked())
    .execute();
  return rows.map((row) => ({ executorId: row.executor_id, failures: row.failures }));
}

/** Claims the executors for this process. */
export async function claimEntries(tx: Db, ids: readonly string[], bootId: string): Promise<void> {
  if (ids.length === 0) return;
  await tx
    .updateTable('sync_turns')
    .set({ boot_id: bootId, woken: 0 })
    .where('executor_id', 'in', ids)
    .execute();
}

/**
 * Releases a claim of this process, unless another process has claimed the executor in the meantime. The casts are
 * needed because PostgreSQL reads an uncast parameter in `case` as text.
 */
export async function releaseEntry(
  db: Db,
  claim: Claim & { bootId: string; nowMs: number; dueAtMs: number },
): Promise<void> {
  await db
    .updateTable('sync_turns')
    .set((eb) => ({
      boot_id: null,
      failures: claim.failures,
      woken: 0,
      due_at: eb
        .case()
        .when('woken', '=', 1)
        .then(eb.cast<number>(eb.val(claim.nowMs), 'bigint'))
        .else(eb.cast<number>(eb.val(claim.dueAtMs), 'bigint'))
        .end(),
    }))
    .where('executor_id', '=', claim.executorId)
    .where('boot_id', '=', claim.bootId)
    .execute();
}

/** Makes the executors due at once, whether or not they are claimed. */
export async function wakeEntries(db: Db, ids: readonly string[]): Promise<void> {
  await db
    .updateTable('sync_turns')
    .set({ due_at: 0, woken: 1 })
    .where('executor_id', 'in', ids)
    .execute();
}

/** Deletes unclaimed entries of executors that are not busy. */
export async function deleteIdleEntries(db: Db, endedSinceMs: number): Promise<void> {
  await db
    .deleteFrom('sync_turns')
    .where('boot_id', 'is', null)
    .where((eb) => eb.not(isBusy(endedSinceMs)(eb)))
    .execute();
}
