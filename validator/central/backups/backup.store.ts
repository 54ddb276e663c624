/** Queries of backup_configs, backup_logs and restore_logs, but those that all kinds of operation share. */
import type { SelectQueryBuilder } from 'kysely';
import type {
  BackupConfig,
  BackupLog,
  Db,
  RestoreLog,
  Tables,
} from '../platform/database/tables.ts';
import { sourcesOf } from './backup.state.ts';

/** Stores the schedule of a pod, over the one that it had. */
export async function putConfig(db: Db, config: BackupConfig): Promise<void> {
  const { id, created_at, pod_id, account_id, ...change } = config;
  await db
    .insertInto('backup_configs')
    .values(config)
    .onConflict((conflict) => conflict.column('pod_id').doUpdateSet(change))
    .execute();
}

/** Active or not, of whatever account. */
export function findConfig(db: Db, id: string): Promise<BackupConfig | undefined> {
  return db.selectFrom('backup_configs').selectAll().where('id', '=', id).executeTakeFirst();
}

/** Active or not. */
export function findConfigOf(db: Db, podId: string): Promise<BackupConfig | undefined> {
  return db.selectFrom('backup_configs').selectAll().where('pod_id', '=', podId).executeTakeFirst();
}

/** An account's active ones of pods that have not ended, oldest first. */
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

/** Active ones whose run has come, the longest overdue first. */
export function listDueConfigs(db: Db, nowMs: number, limit: number): Promise<BackupConfig[]> {
  return db
    .selectFrom('backup_configs')
    .selectAll()
    .where('next_at', '<=', nowMs)
    .orderBy('next_at')
    .limit(limit)
    .execute();
}

/** Sets when it runs next; null: never. */
export async function setNextRun(db: Db, id: string, nextAt: number | null): Promise<void> {
  await db.updateTable('backup_configs').set({ next_at: nextAt }).where('id', '=', id).execute();
}

export async function insertBackup(db: Db, row: BackupLog): Promise<void> {
  await db.insertInto('backup_logs').values(row).execute();
}

export async function insertRestore(db: Db, row: RestoreLog): Promise<void> {
  await db.insertInto('restore_logs').values(row).execute();
}

/** Of whatever account. */
export function findBackup(db: Db, id: string): Promise<BackupLog | undefined> {
  return db.selectFrom('backup_logs').selectAll().where('id', '=', id).executeTakeFirst();
}

/** Of whatever account. */
export function findRestore(db: Db, id: string): Promise<RestoreLog | undefined> {
  return db.selectFrom('restore_logs').selectAll().where('id', '=', id).executeTakeFirst();
}

export type Page = { offset: number; limit: number };

/** Of an account or of a pod, newest first, and how many there are on all pages. */
export function pageOfBackups(
  db: Db,
  of: { column: 'account_id' | 'pod_id'; id: string },
  page: Page,
): Promise<{ rows: BackupLog[]; total: number }> {
  return pageOf(db.selectFrom('backup_logs').where(of.column, '=', of.id), page);
}

/** Of a pod, newest first, and how many there are on all pages. */
export function pageOfRestores(
  db: Db,
  podId: string,
  page: Page,
): Promise<{ rows: RestoreLog[]; total: number }> {
  return pageOf(db.selectFrom('restore_logs').where('pod_id', '=', podId), page);
}

async function pageOf<Table extends 'backup_logs' | 'restore_logs'>(
  all: SelectQueryBuilder<Tables, Table, object>,
  { offset, limit }: Page,
) {
  const rows = await all
    .selectAll()
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .limit(limit)
    .offset(offset)
    .execute();
  const counted = await all.select((eb) => eb.fn.countAll<number>().as('n')).executeTakeFirst();
  return { rows, total: Number(counted?.n ?? 0) };
}

/** Whether a restore that was rented with the pod is not settled yet. */
export async function hasOpenStart(db: Db, podId: string): Promise<boolean> {
  const found = await db
    .selectFrom('restore_logs')
    .select('id')
    .where('pod_id', '=', podId)
    .where('completed_at', 'is', null)
    .where('occasion', '=', 'STARTUP')
    .executeTakeFirst();
  return found !== undefined;
}

/** What only a backup that was made has. */
export async function noteSnapshot(
  db: Db,
  id: string,
  made: Pick<BackupLog, 'snapshot_id' | 'quality' | 'expires_at'>,
): Promise<void> {
  await db.updateTable('backup_logs').set(made).where('id', '=', id).execute();
}

/** What a node said of a restore. */
export async function noteLog(db: Db, id: string, log: string): Promise<void> {
  await db.updateTable('restore_logs').set({ log }).where('id', '=', id).execute();
}

/** Makes a move of the state table on a settled backup whose snapshot, if it has one, is to go; false when it cannot. */
export async function discardBackup(
  db: Db,
  id: string,
  to: 'EXPIRED' | 'DELETED',
  nowMs: number,
): Promise<boolean> {
  const done = await db
    .updateTable('backup_logs')
    .set((eb) => ({
      state: to,
      expires_at: null,
      cleanup_at: eb
        .case()
        .when('snapshot_id', 'is', null)
        .then(null)
        .when('cleaned_at', 'is not', null)
        .then(null)
        .else(eb.cast<number>(eb.val(nowMs), 'bigint'))
        .end(),
    }))
    .where('id', '=', id)
    .where('state', 'in', sourcesOf(to))
    .executeTakeFirst();
  return done.numUpdatedRows > 0n;
}

/** Backups that were kept for long enough. */
export async function listExpiring(db: Db, nowMs: number, limit: number): Promise<string[]> {
  const rows = await db
    .selectFrom('backup_logs')
    .select('id')
    .where('expires_at', '<=', nowMs)
    .orderBy('expires_at')
    .limit(limit)
    .execute();
  return rows.map((row) => row.id);
}

/** Ids of everything that an account has had backed up, but what was deleted. */
export async function listBackupIdsOf(db: Db, accountId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('backup_logs')
    .select('id')
    .where('account_id', '=', accountId)
    .where('state', 'in', sourcesOf('DELETED'))
    .execute();
  return rows.map((row) => row.id);
}

/** Clears what an account's people wrote, and ends its schedules. */
export async function clearBackupsOf(db: Db, accountId: string): Promise<void> {
  await db
    .updateTable('backup_logs')
    .set({ name: null, description: null, verify_error: null })
    .where('account_id', '=', accountId)
    .execute();
  await db
    .updateTable('backup_configs')
    .set({ next_at: null })
    .where('account_id', '=', accountId)
    .execute();
}
