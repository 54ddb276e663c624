/** All queries on pods. A state is changed only where the row still is in a state that allows it. */
import type { Updateable } from 'kysely';
import { isPostgres } from '../db/engine.ts';
import type { Db, Pod, PodsTable } from '../db/tables.ts';
import { CREATION_STATES, POD_STATES, type PodState, sourcesOf } from './pod.state.ts';

/** Columns of a pod but its state, which `movePod` alone writes. */
export type PodChange = Omit<Updateable<PodsTable>, 'state'> & { state?: never };

/** Where every pod begins. */
export type NewPod = Pod & { state: 'pending' };

/** Stores a new pod. */
export async function insertPod(db: Db, pod: NewPod): Promise<void> {
  await db.insertInto('pods').values(pod).execute();
}

/** In any state, ended ones included. */
export async function findPod(db: Db, id: string): Promise<Pod | undefined> {
  return db.selectFrom('pods').selectAll().where('id', '=', id).executeTakeFirst();
}

/** What an account sees in its list; failed creations while they failed after `failedSinceMs`. Newest first. */
export async function listVisible(
  db: Db,
  accountId: string,
  failedSinceMs: number,
): Promise<Pod[]> {
  return db
    .selectFrom('pods')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('ended_at', 'is', null)
    .where('state', 'not in', ['deleting', 'deleted'])
    .where((eb) =>
      eb.or([eb('state', '<>', 'creation_failed'), eb('delete_requested_at', '>', failedSinceMs)]),
    )
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .execute();
}

/** The account's pods on a node that are neither ended nor being deleted. */
export async function listLiveOn(db: Db, accountId: string, executorId: string): Promise<Pod[]> {
  return db
    .selectFrom('pods')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('executor_id', '=', executorId)
    .where('ended_at', 'is', null)
    .where('state', '<>', 'deleting')
    .orderBy('created_at')
    .execute();
}

/** Everything on a node that has not ended. */
export async function listAliveOn(db: Db, executorId: string): Promise<Pod[]> {
  return db
    .selectFrom('pods')
    .selectAll()
    .where('executor_id', '=', executorId)
    .where('ended_at', 'is', null)
    .orderBy('created_at')
    .execute();
}

/** Nodes with pods that have not ended, or that ended after `endedSinceMs`: those may still be there. */
export async function listBusyExecutorIds(db: Db, endedSinceMs: number): Promise<string[]> {
  const rows = await db
    .selectFrom('pods')
    .select('executor_id')
    .where('ended_at', 'is', null)
    .union(db.selectFrom('pods').select('executor_id').where('ended_at', '>', endedSinceMs))
    .execute();
  return rows.map((row) => row.executor_id);
}

/** Pods whose scheduled removal has come. */
export async function listDueRemovals(db: Db, nowMs: number, limit: number): Promise<Pod[]> {
  return dueRemovals(db, nowMs, limit).execute();
}

/** The same, held until the transaction ends; those that another one holds are passed over. */
export async function takeDueRemovals(tx: Db, nowMs: number, limit: number): Promise<Pod[]> {
  return dueRemovals(tx, nowMs, limit)
    .$if(isPostgres(tx), (query) => query.forUpdate().skipLocked())
    .execute();
}

function dueRemovals(db: Db, nowMs: number, limit: number) {
  return db
    .selectFrom('pods')
    .selectAll()
    .where('removal_at', '<=', nowMs)
    .where('ended_at', 'is', null)
    .where('delete_requested_at', 'is', null)
    .orderBy('removal_at')
    .limit(limit);
}

/** Pods that their renter is to be warned of by now: their removal is near, or was when nobody looked. */
export async function listDueWarnings(db: Db, nowMs: number, limit: number): Promise<Pod[]> {
  return dueWarnings(db, nowMs, limit).execute();
}

/** The same, held until the transaction ends; those that another one holds are passed over. */
export async function takeDueWarnings(tx: Db, nowMs: number, limit: number): Promise<Pod[]> {
  return dueWarnings(tx, nowMs, limit)
    .$if(isPostgres(tx), (query) => query.forUpdate().skipLocked())
    .execute();
}

function dueWarnings(db: Db, nowMs: number, limit: number) {
  return db
    .selectFrom('pods')
    .selectAll()
    .where('removal_warning_at', '<=', nowMs)
    .where('ended_at', 'is', null)
    .where('delete_requested_at', 'is', null)
    .orderBy('removal_warning_at')
    .limit(limit);
}

/** Failed creations that failed at or before `failedUntilMs` and of which nothing is left on the node. */
export async function listSettledFailures(
  db: Db,
  failedUntilMs: number,
  limit: number,
): Promise<Pod[]> {
  return db
    .selectFrom('pods')
    .selectAll()
    .where('state', '=', 'creation_failed')
    .where('phase', '=', '')
    .where('delete_requested_at', '<=', failedUntilMs)
    .where('ended_at', 'is', null)
    .limit(limit)
    .execute();
}

/** Changes a pod that is in one of `states`, stays there, and has not ended; false when it is not. */
export async function changePod(
  db: Db,
  id: string,
  states: readonly PodState[],
  change: PodChange,
): Promise<boolean> {
  return updateIn(db, id, states, change);
}

/**
 * Moves a pod that has not ended to `to`: from where the table of pod.state.ts lets it, and of those from
 * `from` alone where that is given. False when the pod is elsewhere.
 */
export async function movePod(
  db: Db,
  id: string,
  to: PodState,
  change: PodChange,
  from: readonly PodState[] = POD_STATES,
): Promise<boolean> {
  const states = sourcesOf(to).filter((state) => from.includes(state));
  return updateIn(db, id, states, { ...change, state: to });
}

async function updateIn(
  db: Db,
  id: string,
  states: readonly PodState[],
  change: Updateable<PodsTable>,
): Promise<boolean> {
  if (states.length === 0) return false;
  const done = await db
    .updateTable('pods')
    .set(change)
    .where('id', '=', id)
    .where('state', 'in', states)
    .where('ended_at', 'is', null)
    .executeTakeFirst();
  return done.numUpdatedRows > 0n;
}

/** Ends a pod that is being removed: false when it is not, or has ended already. */
export async function endPod(
  db: Db,
  id: string,
  change: Pick<Pod, 'ended_at' | 'updated_at'>,
): Promise<boolean> {
  return movePod(db, id, 'deleted', { ...change, phase: '', hold_uusd: 0 });
}

/** What ran first in the latest pods of a node that ever ran, and how long after the rent. */
export async function listLaunches(
  db: Db,
  executorId: string,
  limit: number,
): Promise<{ spec_json: string; tookMs: number }[]> {
  const rows = await db
    .selectFrom('pods')
    .select(['spec_json', 'created_at', 'first_running_at'])
    .where('executor_id', '=', executorId)
    .where('first_running_at', 'is not', null)
    // The spec of any other has been changed since its launch.
    .where('generation', '=', 1)
    .orderBy('first_running_at', 'desc')
    .limit(limit)
    .execute();
  return rows.map(({ spec_json, created_at, first_running_at }) => ({
    spec_json,
    tookMs: (first_running_at ?? created_at) - created_at,
  }));
}

/** Raises what the agent has acknowledged, never lowers it. */
export async function acknowledgeGeneration(db: Db, id: string, generation: number): Promise<void> {
  await db
    .updateTable('pods')
    .set({ acknowledged_generation: generation })
    .where('id', '=', id)
    .where('acknowledged_generation', '<', generation)
    .execute();
}

/** Whether a pod is still on its way to its first `running`. */
export function isBeingCreated(pod: Pod): boolean {
  return CREATION_STATES.some((state) => state === pod.state);
}

/** Pods of anybody that still have, or may have, something on a node. */
export async function listUnended(db: Db, limit: number): Promise<Pod[]> {
  return db
    .selectFrom('pods')
    .selectAll()
    .where('ended_at', 'is', null)
    .where('state', '!=', 'creation_failed')
    .orderBy('created_at')
    .limit(limit)
    .execute();
}

/** An account's pods that nobody has asked to remove. */
export async function listLiveOf(db: Db, accountId: string): Promise<Pod[]> {
  return db
    .selectFrom('pods')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('ended_at', 'is', null)
    .where('delete_requested_at', 'is', null)
    .orderBy('created_at')
    .execute();
}

/** An account's pods that have ended, the latest end first. */
export async function listEnded(
  db: Db,
  accountId: string,
  { offset, limit }: { offset: number; limit: number },
): Promise<Pod[]> {
  return db
    .selectFrom('pods')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('ended_at', 'is not', null)
    .orderBy('ended_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .offset(offset)
    .execute();
}

/** How many those are. */
export async function countEnded(db: Db, accountId: string): Promise<number> {
  const row = await db
    .selectFrom('pods')
    .select((select) => select.fn.countAll<number>().as('count'))
    .where('account_id', '=', accountId)
    .where('ended_at', 'is not', null)
    .executeTakeFirstOrThrow();
  return Number(row.count);
}
