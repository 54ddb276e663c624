/** All queries on sync_turns. */
import type { ExpressionBuilder } from 'kysely';
import { isPostgres } from '../../../database/engine.ts';
import type { Db, Tables } from '../../platform/database/tables.ts';
import type { Turn } from './sync-turns.ts';

/** Executors with pods that have not ended, or that ended after `endedSinceMs`, and with copies of volumes. */
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

/** Adds what has pods or copies of volumes and no row yet, due at once. */
export async function addTurns(db: Db, endedSinceMs: number): Promise<void> {
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
  /** Other living processes: their turns are not to be had. */
  others: readonly string[];
  /** Executors that are in a turn of this process. */
  running: readonly string[];
  /** Of those that did not answer last time, or of the rest. */
  slow: boolean;
  limit: number;
};

/** Due executors that are in nobody's turn; rows that another transaction is just taking are passed over. */
export async function listDueTurns(tx: Db, filter: DueFilter): Promise<Turn[]> {
  const { nowMs, endedSinceMs, others, running, slow, limit } = filter;
  const rows = await tx
    .selectFrom('sync_turns')
    .select(['executor_id', 'failures'])
    .where('due_at', '<=', nowMs)
    .where('failures', slow ? '>' : '=', 0)
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

/** Makes them turns of this process. */
export async function takeTurns(tx: Db, ids: readonly string[], bootId: string): Promise<void> {
  if (ids.length === 0) return;
  await tx
    .updateTable('sync_turns')
    .set({ boot_id: bootId, woken: 0 })
    .where('executor_id', 'in', ids)
    .execute();
}

/** Ends a turn of this process; one that another has taken over since is left alone. (PostgreSQL takes an uncast parameter in `case` for text.) */
export async function endTurn(
  db: Db,
  turn: Turn & { bootId: string; nowMs: number; dueAtMs: number },
): Promise<void> {
  await db
    .updateTable('sync_turns')
    .set((eb) => ({
      boot_id: null,
      failures: turn.failures,
      woken: 0,
      due_at: eb
        .case()
        .when('woken', '=', 1)
        .then(eb.cast<number>(eb.val(turn.nowMs), 'bigint'))
        .else(eb.cast<number>(eb.val(turn.dueAtMs), 'bigint'))
        .end(),
    }))
    .where('executor_id', '=', turn.executorId)
    .where('boot_id', '=', turn.bootId)
    .execute();
}

/** Due at once, in whoever's turn they are. */
export async function wakeTurns(db: Db, ids: readonly string[]): Promise<void> {
  await db
    .updateTable('sync_turns')
    .set({ due_at: 0, woken: 1 })
    .where('executor_id', 'in', ids)
    .execute();
}

/** Drops rows that are in nobody's turn and without pods. */
export async function dropIdleTurns(db: Db, endedSinceMs: number): Promise<void> {
  await db
    .deleteFrom('sync_turns')
    .where('boot_id', 'is', null)
    .where((eb) => eb.not(isBusy(endedSinceMs)(eb)))
    .execute();
}
