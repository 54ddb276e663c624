/** Queries of backup_configs, the schedules of backups and drills. */
import { prepared, type Slots } from '../platform/database/prepared.ts';
import type { BackupConfig, BackupLog, Db } from '../platform/database/tables.ts';

/** Stores the schedule of a pod, replacing the previous one. */
export async function putConfig(db: Db, config: BackupConfig): Promise<void> {
  const { id, created_at, pod_id, account_id, ...change } = config;
  await db
    .insertInto('backup_configs')
    .values(config)
    .onConflict((conflict) => conflict.column('pod_id').doUpdateSet(change))
    .execute();
}

/** Returns a schedule of any account, active or not. */
export function findConfig(db: Db, id: string): Promise<BackupConfig | undefined> {
  return db.selectFrom('backup_configs').selectAll().where('id', '=', id).executeTakeFirst();
}

const configOf = prepared((db, { podId }: Slots<{ podId: string }>) =>
  db.selectFrom('backup_configs').selectAll().where('pod_id', '=', podId),
);

/** Returns the schedule of a pod, active or not. */
export async function findConfigOf(db: Db, podId: string): Promise<BackupConfig | undefined> {
  return (await configOf(db, { podId })).rows[0];
}

/** Returns an account's active schedules of pods that have not ended, oldest first. */
export function listConfigs(db: Db, accountId: string): Promise<BackupConfig[]> {
  return db
    .selectFrom('backup_configs')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('next_at', 'is not', null)
    .where((eb) =>
      eb.exists(
        eb
          .selectFrom('pods')
          .select('pods.id')
          .whereRef('pods.id', '=', 'backup_configs.pod_id')
          .where('pods.ended_at', 'is', null),
      ),
    )
    .orderBy('created_at')
    .orderBy('id')
    .execute();
}

/** Returns active schedules whose backup is due, the longest overdue first. */
export function listDueConfigs(db: Db, nowMs: number, limit: number): Promise<BackupConfig[]> {
  return db
    .selectFrom('backup_configs')
    .selectAll()
    .where('next_at', '<=', nowMs)
    .orderBy('next_at')
    .limit(limit)
    .execute();
}

/** Sets the time of the next backup; null deactivates the schedule. */
export async function setNextRun(db: Db, id: string, nextAt: number | null): Promise<void> {
  await db.updateTable('backup_configs').set({ next_at: nextAt }).where('id', '=', id).execute();
}

/** Returns active schedules whose drill is due or has no time yet, the longest overdue first. */
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

/** Sets the time of the next drill of a pod's newest backup. */
export async function setNextDrill(db: Db, podId: string, drillAt: number): Promise<void> {
  await db
    .updateTable('backup_configs')
    .set({ drill_at: drillAt })
    .where('pod_id', '=', podId)
    .execute();
}

/** Returns the newest completed backup of a pod. */
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
 * Returns the verified node for a drill: the node of the backup's pod while the pod exists, otherwise the node of the
 * account's newest pod. Other nodes must not run the drill, because a drill exposes the data to its node.
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
