/**
 * Queries on volumes and their copies. A copy's state changes only if the row is still in a state that allows the
 * move. A copy is live unless it is `dropping`.
 */

import type { Updateable } from 'kysely';
import { idsJson, isAmong, prepared, type Slots } from '../../platform/database/prepared.ts';
import type { VolumeCopiesTable, VolumesTable } from '../../platform/database/tables/backups.ts';
import type { Db, Volume, VolumeCopy } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import { enterQueue } from '../pods/sync-queue.ts';
import { type CopyState, sourcesOf } from './volume.state.ts';

type CopyChange = Omit<Updateable<VolumeCopiesTable>, 'state'> & { state?: never };

export async function insertVolume(db: Db, row: Volume): Promise<void> {
  await db.insertInto('volumes').values(row).execute();
}

/** Inserts a copy, and makes its node due for a sync. */
export async function insertCopy(db: Db, row: VolumeCopy): Promise<void> {
  await db.insertInto('volume_copies').values(row).execute();
  await enterQueue(db, row.executor_id, row.created_at);
}

/** Finds a volume of any account, whether or not it is deleted. In a transaction, locks it. */
export async function findVolume(db: Db, id: string): Promise<Volume | undefined> {
  if (db.isTransaction) await lockRow(db, 'volumes', id);
  return db.selectFrom('volumes').selectAll().where('id', '=', id).executeTakeFirst();
}

/** An account's volumes that are not deleted, oldest first. */
export function listVolumes(db: Db, accountId: string): Promise<Volume[]> {
  return db
    .selectFrom('volumes')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('deleted_at', 'is', null)
    .orderBy('created_at')
    .orderBy('id')
    .execute();
}

export async function listAttached(db: Db, podIds: readonly string[]): Promise<Volume[]> {
  if (podIds.length === 0) return [];
  return db.selectFrom('volumes').selectAll().where('attached_pod_id', 'in', podIds).execute();
}

export async function updateVolume(
  db: Db,
  id: string,
  change: Updateable<VolumesTable>,
): Promise<void> {
  await db.updateTable('volumes').set(change).where('id', '=', id).execute();
}

export async function deleteVolumeRow(db: Db, id: string): Promise<void> {
  await db.deleteFrom('volumes').where('id', '=', id).execute();
}

/** Detaches the pod's volume, if it has one. */
export async function detachFrom(db: Db, podId: string): Promise<void> {
  await db
    .updateTable('volumes')
    .set({ attached_pod_id: null })
    .where('attached_pod_id', '=', podId)
    .execute();
}

/** The volume's live copy. */
export function findCopyOf(db: Db, volumeId: string): Promise<VolumeCopy | undefined> {
  return liveCopies(db).where('volume_id', '=', volumeId).executeTakeFirst();
}

/** The live copy that the pod has, or that it had last. */
export function findCopyOfPod(db: Db, podId: string): Promise<VolumeCopy | undefined> {
  return liveCopies(db).where('pod_id', '=', podId).executeTakeFirst();
}

/** Live copies of these volumes. */
export async function listCopiesOf(db: Db, volumeIds: readonly string[]): Promise<VolumeCopy[]> {
  if (volumeIds.length === 0) return [];
  return liveCopies(db).where('volume_id', 'in', volumeIds).execute();
}

const onNodes = prepared((db, { ids }: Slots<{ ids: string }>) =>
  db
    .selectFrom('volume_copies')
    .selectAll()
    .where(isAmong(db, 'executor_id', ids))
    .orderBy('created_at')
    .orderBy('id'),
);

/** All copies on these nodes, oldest first. Queried in every pass over the nodes. */
export async function listCopiesOnNodes(
  db: Db,
  executorIds: readonly string[],
): Promise<VolumeCopy[]> {
  return (await onNodes(db, { ids: idsJson(executorIds) })).rows;
}

/** Returns true if the node has a live copy that was updated after `sinceMs`. */
export async function hasLiveCopies(db: Db, executorId: string, sinceMs: number): Promise<boolean> {
  const row = await liveCopies(db)
    .where('executor_id', '=', executorId)
    .where('updated_at', '>', sinceMs)
    .executeTakeFirst();
  return row !== undefined;
}

/** Live copies whose node last reported them before `beforeMs`. */
export function listSilentCopies(db: Db, beforeMs: number, limit: number): Promise<VolumeCopy[]> {
  return liveCopies(db).where('seen_at', '<', beforeMs).limit(limit).execute();
}

/**
 * Moves a copy to `to` from a state that volume.state.ts allows. With `operationId`, only while this operation runs.
 * Returns false if nothing changed.
 */
export async function moveCopy(
  db: Db,
  id: string,
  to: CopyState,
  change: CopyChange,
  operationId?: string,
): Promise<boolean> {
  const done = await db
    .updateTable('volume_copies')
    .set({ ...change, state: to })
    .where('id', '=', id)
    .where('state', 'in', sourcesOf(to))
    .$if(operationId !== undefined, (query) => query.where('operation_id', '=', operationId ?? ''))
    .executeTakeFirst();
  return done.numUpdatedRows > 0n;
}

/**
 * Changes a copy that is still in `state`. With `operationId`, only while this operation runs. Returns false if nothing
 * changed.
 */
export async function changeCopy(
  db: Db,
  { id, state }: Pick<VolumeCopy, 'id' | 'state'>,
  change: CopyChange,
  operationId?: string,
): Promise<boolean> {
  const done = await db
    .updateTable('volume_copies')
    .set(change)
    .where('id', '=', id)
    .where('state', '=', state)
    .$if(operationId !== undefined, (query) => query.where('operation_id', '=', operationId ?? ''))
    .executeTakeFirst();
  return done.numUpdatedRows > 0n;
}

/** Deletes a copy that its node has removed. */
export async function deleteCopy(db: Db, id: string): Promise<void> {
  await db
    .deleteFrom('volume_copies')
    .where('id', '=', id)
    .where('state', '=', 'dropping')
    .execute();
}

/** Returns true if a node may still read or write a copy. */
export async function hasCopies(db: Db, volumeId: string): Promise<boolean> {
  const row = await db
    .selectFrom('volume_copies')
    .select('id')
    .where('volume_id', '=', volumeId)
    .executeTakeFirst();
  return row !== undefined;
}

/**
 * Volumes whose repository has something to remove, including deleted volumes. `only` limits the query to one volume.
 */
export function listToClean(db: Db, limit: number, only?: string): Promise<Volume[]> {
  return db
    .selectFrom('volumes')
    .selectAll()
    .where((eb) => eb.or([eb('has_waste', '=', 1), eb('deleted_at', 'is not', null)]))
    .$if(only !== undefined, (query) => query.where('id', '=', only ?? ''))
    .limit(limit)
    .execute();
}

function liveCopies(db: Db) {
  return db.selectFrom('volume_copies').selectAll().where('state', '<>', 'dropping');
}
