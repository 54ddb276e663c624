/** Queries that expire, delete and clean up backups. */
import type { Expression, ExpressionBuilder, SqlBool } from 'kysely';
import type { Db, Tables } from '../platform/database/tables.ts';
import { sourcesOf } from './operation.state.ts';

/**
 * Running time between the expiry of a backup and the removal of its snapshot. After a deletion by the owner, the
 * snapshot is removed without this delay.
 */
const EXPIRY_GRACE_MS = 7 * 86_400_000;

/**
 * Expires or deletes a backup and schedules the cleanup of its snapshot; returns false if the state of the backup does
 * not allow this.
 */
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
      cleanup_after_ms:
        to === 'EXPIRED'
          ? eb
              .selectFrom('running_time')
              .select((of) => of('total_ms', '+', EXPIRY_GRACE_MS).as('ms'))
          : 0,
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

/** Returns ids of backups whose retention has ended. */
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

/** Returns ids of an account's backups that can be deleted. */
export async function listDeletableOf(db: Db, accountId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('backup_logs')
    .select('id')
    .where('account_id', '=', accountId)
    .where('state', 'in', sourcesOf('DELETED'))
    .execute();
  return rows.map((row) => row.id);
}

/** Erases the texts of an account's backups and deactivates its schedules. */
export async function clearAccount(db: Db, accountId: string): Promise<void> {
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

/** Deletes rows created before `beforeMs`: ended restores and drills, and ended backups without data in the storage. */
export async function deleteOldRows(db: Db, beforeMs: number): Promise<void> {
  await db
    .deleteFrom('backup_logs')
    .where('created_at', '<', beforeMs)
    .where('completed_at', 'is not', null)
    .where('expires_at', 'is', null)
    .where('cleanup_at', 'is', null)
    .execute();
  for (const table of ['restore_logs', 'backup_drills'] as const) {
    await db
      .deleteFrom(table)
      .where('created_at', '<', beforeMs)
      .where('completed_at', 'is not', null)
      .execute();
  }
}

/** Returns the snapshots of completed backups, and of expired backups within their grace, in a repository. */
export async function listRetainedSnapshots(db: Db, repositoryId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('backup_logs')
    .select('snapshot_id')
    .where('repository_id', '=', repositoryId)
    .where((eb) =>
      eb.or([
        eb('state', '=', 'COMPLETED'),
        eb.and([eb('cleanup_at', 'is not', null), isInGrace(eb)]),
      ]),
    )
    .execute();
  return rows.flatMap(({ snapshot_id: id }) => (id === null ? [] : [id]));
}

/** Returns ids of the backups whose snapshots have to be removed from a repository. */
export async function listToRemove(db: Db, repositoryId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('backup_logs')
    .select('id')
    .where('repository_id', '=', repositoryId)
    .where('cleanup_at', 'is not', null)
    .where((eb) => eb.not(isInGrace(eb)))
    .execute();
  return rows.map((row) => row.id);
}

/** True for an expired backup whose snapshot is retained, because the grace has not passed as running time. */
export function isInGrace(eb: ExpressionBuilder<Tables, 'backup_logs'>): Expression<SqlBool> {
  const ranMs = eb.selectFrom('running_time').select('total_ms');
  return eb('backup_logs.cleanup_after_ms', '>', ranMs);
}

/** Records that the snapshots of these backups are removed. */
export async function markCleaned(db: Db, ids: readonly string[], nowMs: number): Promise<void> {
  if (ids.length === 0) return;
  await db
    .updateTable('backup_logs')
    .set({ cleanup_at: null, cleanup_problem: null, cleaned_at: nowMs })
    .where('id', 'in', ids)
    .execute();
}

/** Records why snapshots have not been removed from a repository. */
export async function setProblem(db: Db, repositoryId: string, problem: string): Promise<void> {
  await db
    .updateTable('backup_logs')
    .set({ cleanup_problem: problem })
    .where('repository_id', '=', repositoryId)
    .where('cleanup_at', 'is not', null)
    .execute();
}
