/** Queries of volumes and of their copies. A copy's state is changed only where the row is in one that allows it. */

import type { Updateable } from 'kysely';
import { prepared, type Slots } from '../../platform/database/prepared.ts';
import type { VolumeCopiesTable, VolumesTable } from '../../platform/database/tables/backups.ts';
import type { Db, Volume, VolumeCopy } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import { type CopyState, sourcesOf } from './volume.state.ts';

type CopyChange = Omit<Updateable<VolumeCopiesTable>, 'state'> & { state?: never };

export async function insertVolume(db: Db, row: Volume): Promise<void> {
  await db.insertInto('volumes').values(row).execute();
}

export async function insertCopy(db: Db, row: VolumeCopy): Promise<void> {
  await db.insertInto('volume_copies').values(row).execute();
}

/** Of whatever account, deleted or not; in a transaction held until its end. */
export async function findVolume(db: Db, id: string): Promise<Volume | undefined> {
  if (db.isTransaction) await lockRow(db, 'volumes', id);
  return db.selectFrom('volumes').selectAll().where('id', '=', id).executeTakeFirst();
}

/** Those of an account that it has not deleted, oldest first. */
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

/** Those that pods have, of these pods. */
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

/** The volume that a pod has is nobody's from now on. */
export async function detachFrom(db: Db, podId: string): Promise<void> {
  await db
    .updateTable('volumes')
    .set({ attached_pod_id: null })
    .where('attached_pod_id', '=', podId)
    .execute();
}

/** The copy that counts. */
export function findCopyOf(db: Db, volumeId: string): Promise<VolumeCopy | undefined> {
  return liveCopies(db).where('volume_id', '=', volumeId).executeTakeFirst();
}

/** The one that counts and that a pod has, or had last. */
export function findCopyOfPod(db: Db, podId: string): Promise<VolumeCopy | undefined> {
  return liveCopies(db).where('pod_id', '=', podId).executeTakeFirst();
}

/** Those that count, of these volumes. */
export async function listCopiesOf(db: Db, volumeIds: readonly string[]): Promise<VolumeCopy[]> {
  if (volumeIds.length === 0) return [];
  return liveCopies(db).where('volume_id', 'in', volumeIds).execute();
}

const onNode = prepared((db, { executorId }: Slots<{ executorId: string }>) =>
  db
    .selectFrom('volume_copies')
    .selectAll()
    .where('executor_id', '=', executorId)
    .orderBy('created_at')
    .orderBy('id'),
);

/** All on a node, those to drop included, oldest first. Asked in every pass over the node. */
export async function listCopiesOn(db: Db, executorId: string): Promise<VolumeCopy[]> {
  return (await onNode(db, { executorId })).rows;
}

/** Whether one on a node counts, and was not in its state before `sinceMs` already. */
export async function hasLiveCopies(db: Db, executorId: string, sinceMs: number): Promise<boolean> {
  const row = await liveCopies(db)
    .where('executor_id', '=', executorId)
    .where('updated_at', '>', sinceMs)
    .executeTakeFirst();
  return row !== undefined;
}

/** Those that count and were last heard of before `beforeMs`. */
export function listSilentCopies(db: Db, beforeMs: number, limit: number): Promise<VolumeCopy[]> {
  return liveCopies(db).where('seen_at', '<', beforeMs).limit(limit).execute();
}

/** Moves one to `to`, from where the table of volume.state.ts lets it, and with that operation under way if one is given. */
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

/** Changes one that is still in `state`, with that operation under way if one is given; false when it is not. */
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

/** Nothing of it is left on its node. */
export async function forgetCopy(db: Db, id: string): Promise<void> {
  await db
    .deleteFrom('volume_copies')
    .where('id', '=', id)
    .where('state', '=', 'dropping')
    .execute();
}

/** Whether any copy of a volume may still be read or written by a node. */
export async function hasCopies(db: Db, volumeId: string): Promise<boolean> {
  const row = await db
    .selectFrom('volume_copies')
    .select('id')
    .where('volume_id', '=', volumeId)
    .executeTakeFirst();
  return row !== undefined;
}

/** Volumes whose repository has something to take out, deleted ones included; one alone when it is named. */
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
