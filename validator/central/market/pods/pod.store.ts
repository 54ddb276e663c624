/** All queries on pods. A state changes only if the row is still in a state that allows the move. */
import { sql, type Updateable } from 'kysely';
import { type Metered, meterTransition } from '../../money/metering/usage.service.ts';
import {
  idsJson,
  insertOne,
  isAmong,
  isAmongJoined,
  jsonRows,
  prepared,
  preparedEach,
  type Slots,
} from '../../platform/database/prepared.ts';
import { sealed } from '../../platform/database/sealed-columns.ts';
import type { PodsTable } from '../../platform/database/tables/market.ts';
import type { Db, Pod } from '../../platform/database/tables.ts';
import { lockFreeRows } from '../../platform/database/transactions.ts';
import { CREATION_STATES, POD_STATES, type PodState, sourcesOf } from './pod.state.ts';
import { enterQueue } from './sync-queue.store.ts';
import type { KnownPod } from './unknown-pods.plan.ts';

/** Columns of a pod except its state, which only `movePod` writes. */
export type PodChange = Omit<Updateable<PodsTable>, 'state'> & { state?: never };

export type NewPod = Pod & { state: 'pending' };

/** Inserts a pod, and makes its node due for a sync. */
export async function insertPod(db: Db, pod: NewPod): Promise<void> {
  await insertOne(db, 'pods', sealed(db, pod));
  await enterQueue(db, pod.executor_id, pod.created_at);
}

const byId = prepared((db, { id }: Slots<{ id: string }>) =>
  db.selectFrom('pods').selectAll().where('id', '=', id),
);

/** Finds a pod in any state, including ended pods. */
export async function findPod(db: Db, id: string): Promise<Pod | undefined> {
  return (await byId(db, { id })).rows[0];
}

const known = prepared((db, { ids }: Slots<{ ids: string }>) =>
  db
    .selectFrom('pods')
    .select(['id', 'executor_id', 'generation', 'acknowledged_generation'])
    .select(['delete_requested_at', 'ended_at'])
    .where(isAmong(db, 'id', ids)),
);

/** Finds the columns with which reports of nodes are compared, of pods in any state. Queried in every pass. */
export async function findKnown(db: Db, ids: readonly string[]): Promise<KnownPod[]> {
  if (ids.length === 0) return [];
  return (await known(db, { ids: idsJson(ids) })).rows;
}

/** Pods of an account that have not ended, newest first. Their nodes may still have to remove some of them. */
export async function listUnendedOf(db: Db, accountId: string): Promise<Pod[]> {
  return db
    .selectFrom('pods')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('ended_at', 'is', null)
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .execute();
}

/**
 * Pods in an account's list: pods that have not ended, except failed creations that failed before `failedSinceMs`.
 * Newest first.
 */
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

const unendedOn = prepared((db, { ids }: Slots<{ ids: string }>) =>
  db
    .selectFrom('pods')
    .selectAll()
    .where(isAmong(db, 'executor_id', ids))
    .where('ended_at', 'is', null)
    .orderBy('created_at'),
);

/** Pods on these nodes that have not ended, oldest first. Queried in every pass over the nodes. */
export async function listUnendedOnNodes(db: Db, executorIds: readonly string[]): Promise<Pod[]> {
  return (await unendedOn(db, { ids: idsJson(executorIds) })).rows;
}

const PROGRESS = [
  ...(['id', 'executor_id', 'state', 'phase', 'generation', 'acknowledged_generation'] as const),
  ...(['reboots_requested', 'reboots_acknowledged', 'jupyter_port', 'jupyter_status'] as const),
  ...(['first_running_at', 'launch_until'] as const),
] as const;

/** Columns that determine when the pod sync visits the node again. */
export type PodProgress = Pick<Pod, (typeof PROGRESS)[number]>;

const progressOn = prepared((db, { ids }: Slots<{ ids: string }>) =>
  db
    .selectFrom('pods')
    .select(PROGRESS)
    .where(isAmong(db, 'executor_id', ids))
    .where('ended_at', 'is', null),
);

/** Progress of pods on these nodes that have not ended. Queried after every pass over the nodes. */
export async function listProgressOnNodes(
  db: Db,
  executorIds: readonly string[],
): Promise<PodProgress[]> {
  return (await progressOn(db, { ids: idsJson(executorIds) })).rows;
}

/** Pods on a node that have not ended, oldest first. */
export function listUnendedOn(db: Db, executorId: string): Promise<Pod[]> {
  return listUnendedOnNodes(db, [executorId]);
}

/** Returns true if a pod on the node is being created. */
export async function hasLaunchOn(db: Db, executorId: string): Promise<boolean> {
  const found = await db
    .selectFrom('pods')
    .select('id')
    .where('executor_id', '=', executorId)
    .where('ended_at', 'is', null)
    .where('state', 'in', CREATION_STATES)
    .limit(1)
    .executeTakeFirst();
  return found !== undefined;
}

/** A node's pods that have not ended and for which no removal was requested separately. */
export async function listKeptOn(db: Db, executorId: string): Promise<Pod[]> {
  return db
    .selectFrom('pods')
    .selectAll()
    .where('executor_id', '=', executorId)
    .where('ended_at', 'is', null)
    .where('delete_requested_at', 'is', null)
    .orderBy('created_at')
    .orderBy('id')
    .execute();
}

/** Changes a pod without changing its state. Returns false if the pod has ended or is in none of `states`. */
export async function changePod(
  db: Db,
  id: string,
  states: readonly PodState[],
  change: PodChange,
): Promise<boolean> {
  return updateIn(db, id, states, change);
}

/** Time at which a node reported a pod in this state; `healthy_at` is null unless its container ran. */
export type SeenPod = { id: string; state: PodState; seen_at: number; healthy_at: number | null };

const storeSeen = prepared((db, { given, ids }: Slots<{ given: string; ids: string }>) =>
  db
    .updateTable('pods')
    .from(jsonRows(db, given, SEEN_COLUMNS).as('seen'))
    .set({
      seen_at: sql<number>`seen.seen_at`,
      healthy_at: sql<number>`coalesce(seen.healthy_at, pods.healthy_at)`,
    })
    .where(isAmongJoined(db, 'pods.id', ids))
    .whereRef('pods.id', '=', 'seen.id')
    .whereRef('pods.state', '=', 'seen.state')
    .where('pods.ended_at', 'is', null),
);
const SEEN_COLUMNS = {
  id: 'text',
  state: 'text',
  seen_at: 'bigint',
  healthy_at: 'bigint',
} as const;

/** Stores the times of pods that are still in the state, and whose rows no other transaction has locked. */
export async function storeSeenPods(tx: Db, seen: readonly SeenPod[]): Promise<void> {
  const free = await lockFreeRows(
    tx,
    'pods',
    seen.map(({ id }) => id),
  );
  const given = seen.filter(({ id }) => free.has(id));
  if (given.length === 0) return;
  await storeSeen(tx, {
    given: JSON.stringify(given),
    ids: idsJson(given.map(({ id }) => id)),
  });
}

/** Columns written together with a move; `updated_at` is the time of the move. */
export type PodMove = PodChange & { updated_at: number };

/**
 * Moves a pod that has not ended to `to`, from a state that pod.state.ts allows and that `from` contains, if given.
 * Returns false for a pod in another state. Metering observes every move, because no other function writes states.
 */
export async function movePod(
  tx: Db,
  id: string,
  to: PodState,
  change: PodMove,
  { from = POD_STATES, ...metered }: Metered & { from?: readonly PodState[] } = {},
): Promise<boolean> {
  const states = sourcesOf(to).filter((state) => from.includes(state));
  if (!(await updateIn(tx, id, states, { ...change, state: to }))) return false;
  await meterTransition(tx, id, to, { ...metered, nowMs: change.updated_at });
  return true;
}

const update = preparedEach(
  (db, { targetId, states }: Slots<{ targetId: string; states: string }>, columns) =>
    db
      .updateTable('pods')
      .set(columns)
      .where('id', '=', targetId)
      .where(isAmong(db, 'state', states))
      .where('ended_at', 'is', null),
);

async function updateIn(
  db: Db,
  id: string,
  states: readonly PodState[],
  change: Updateable<PodsTable>,
): Promise<boolean> {
  if (states.length === 0) return false;
  const values = { targetId: id, states: idsJson(states) };
  const { numAffectedRows = 0n } = await update(db, sealed(db, change), values);
  return numAffectedRows > 0n;
}

/**
 * Ends a pod that is being removed and deletes its secrets. Returns false if the pod is not being removed or has ended.
 */
export async function endPod(
  db: Db,
  id: string,
  change: Pick<Pod, 'ended_at' | 'updated_at'>,
): Promise<boolean> {
  const isEnded = await movePod(db, id, 'deleted', { ...change, phase: '' });
  if (isEnded) await db.deleteFrom('pod_secrets').where('pod_id', '=', id).execute();
  return isEnded;
}

type Launches = Slots<{ executorId: string; limit: number }>;

const launches = prepared((db, { executorId, limit }: Launches) =>
  db
    .selectFrom('pods')
    .select(['image_key', 'created_at', 'first_running_at'])
    .where('executor_id', '=', executorId)
    .where('first_running_at', 'is not', null)
    // A later generation may have been changed before it ran.
    .where('generation', '=', 1)
    .orderBy('first_running_at', 'desc')
    .limit(limit),
);

/**
 * Returns image and time from rental to first `running` for a node's latest pods, except pods that were changed since
 * their rental.
 */
export async function listLaunches(
  db: Db,
  executorId: string,
  limit: number,
): Promise<{ image: string | null; tookMs: number }[]> {
  const { rows } = await launches(db, { executorId, limit });
  return rows.map(({ image_key, created_at, first_running_at }) => ({
    image: image_key,
    tookMs: (first_running_at ?? created_at) - created_at,
  }));
}

const acknowledge = prepared((db, { id, generation }: Slots<{ id: string; generation: number }>) =>
  db
    .updateTable('pods')
    .set({ acknowledged_generation: generation })
    .where('id', '=', id)
    .where('acknowledged_generation', '<', generation),
);

/** Raises the acknowledged generation; never lowers it. */
export async function acknowledgeGeneration(db: Db, id: string, generation: number): Promise<void> {
  await acknowledge(db, { id, generation });
}

/** Returns true until the pod runs for the first time. */
export function isBeingCreated(pod: Pod): boolean {
  return CREATION_STATES.some((state) => state === pod.state);
}

/**
 * Pods of all accounts that have not ended, except failed creations. Their nodes may still have a container of these
 * pods.
 */
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

/** An account's pods whose removal was not requested. */
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

/** The pods that an API key rented and whose removal was not requested. */
export async function listLiveOfKey(db: Db, keyId: string): Promise<Pod[]> {
  return db
    .selectFrom('pods')
    .selectAll()
    .where('created_by_api_key_id', '=', keyId)
    .where('ended_at', 'is', null)
    .where('delete_requested_at', 'is', null)
    .orderBy('created_at')
    .execute();
}

/** An account's pods that have ended, most recently ended first. */
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

export async function countEnded(db: Db, accountId: string): Promise<number> {
  const row = await db
    .selectFrom('pods')
    .select((select) => select.fn.countAll<number>().as('count'))
    .where('account_id', '=', accountId)
    .where('ended_at', 'is not', null)
    .executeTakeFirstOrThrow();
  return Number(row.count);
}
