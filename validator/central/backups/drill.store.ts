/** Queries of backup_drills, and of what drills leave in other tables. */

import type { Updateable } from 'kysely';
import type { BackupLogsTable } from '../platform/database/tables/backups.ts';
import type { BackupConfig, BackupDrill, BackupLog, Db } from '../platform/database/tables.ts';

export async function insertDrill(db: Db, row: BackupDrill): Promise<void> {
  await db.insertInto('backup_drills').values(row).execute();
}

/** The one of a pod's backups that is not settled yet. */
export function findOpenDrill(db: Db, podId: string): Promise<BackupDrill | undefined> {
  return openDrills(db).where('pod_id', '=', podId).executeTakeFirst();
}

/** Whether a node has one that is not settled yet. */
export async function isDrilling(db: Db, executorId: string): Promise<boolean> {
  const found = await openDrills(db).where('executor_id', '=', executorId).executeTakeFirst();
  return found !== undefined;
}

/** Those that are not settled yet, on nodes without pods: they are asked no more, or not for long. */
export function listStrandedDrills(db: Db, limit: number): Promise<BackupDrill[]> {
  return openDrills(db)
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom('pods')
            .select('pods.id')
            .whereRef('pods.executor_id', '=', 'backup_drills.executor_id')
            .where('pods.ended_at', 'is', null),
        ),
      ),
    )
    .orderBy('created_at')
    .limit(limit)
    .execute();
}

type Verification = Pick<
  Updateable<BackupLogsTable>,
  | 'verify_status'
  | 'verified_at'
  | 'verify_error'
  | 'verify_error_code'
  | 'verified_files'
  | 'verified_bytes'
>;

/** Writes how a drill of a backup stands into its log. */
export async function noteVerification(
  db: Db,
  backupId: string,
  change: Verification,
): Promise<void> {
  await db.updateTable('backup_logs').set(change).where('id', '=', backupId).execute();
}

/** The newest backup of a pod that is kept. */
export function findNewestBackup(db: Db, podId: string): Promise<BackupLog | undefined> {
  return db
    .selectFrom('backup_logs')
    .selectAll()
    .where('pod_id', '=', podId)
    .where('state', '=', 'COMPLETED')
    .where('snapshot_id', 'is not', null)
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .executeTakeFirst();
}

/**
 * The verified node to read a pod's backup back on: its own while it lives, else the newest where its account has
 * another pod. Nobody else's: whoever reads a backup back sees what is in it.
 */
export async function findDrillExecutor(
  db: Db,
  pod: { id: string; account_id: string },
): Promise<string | null> {
  const found = await db
    .selectFrom('pods')
    .innerJoin('executors', 'executors.id', 'pods.executor_id')
    .select('pods.executor_id')
    .where('pods.account_id', '=', pod.account_id)
    .where('pods.ended_at', 'is', null)
    .where('pods.delete_requested_at', 'is', null)
    .where('executors.state', '=', 'verified')
    .orderBy((eb) => eb.case().when('pods.id', '=', pod.id).then(eb.lit(0)).else(eb.lit(1)).end())
    .orderBy('pods.created_at', 'desc')
    .orderBy('pods.id')
    .executeTakeFirst();
  return found?.executor_id ?? null;
}

/** Schedules whose newest backup is to be read back, or for which that is not planned yet; the longest overdue first. */
export function listDueDrills(db: Db, nowMs: number, limit: number): Promise<BackupConfig[]> {
  return db
    .selectFrom('backup_configs')
    .selectAll()
    .where('next_at', 'is not', null)
    .where((eb) => eb.or([eb('drill_at', 'is', null), eb('drill_at', '<=', nowMs)]))
    .orderBy('drill_at')
    .limit(limit)
    .execute();
}

/** Sets when the newest backup of a pod's schedule is next read back. */
export async function setNextDrill(db: Db, podId: string, drillAt: number): Promise<void> {
  await db
    .updateTable('backup_configs')
    .set({ drill_at: drillAt })
    .where('pod_id', '=', podId)
    .execute();
}

function openDrills(db: Db) {
  return db.selectFrom('backup_drills').selectAll().where('completed_at', 'is', null);
}
