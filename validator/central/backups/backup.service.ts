/** What renters do with backups (contract 9.1). Effects on nodes are left to the sync. */
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { requireAnyOwnPod, requireOwnPod } from '../market/pods/pod-access.ts';
import type { BackupLog, Database, Db } from '../platform/database/tables.ts';
import type { Caller, UserIdentity } from '../platform/identity.ts';
import { beginBackup } from './backup.begin.ts';
import { backupRow, pageFacts } from './backup.row.ts';
import type {
  BackupLogPage,
  BackupLogResponse,
  ManualBackupTriggerRequest,
  PageQuery,
} from './backup.schemas.ts';
import {
  clearBackupsOf,
  discardBackup,
  findBackup,
  findConfigOf,
  listBackupIdsOf,
  pageOfBackups,
} from './backup.store.ts';
import { busyError } from './backup-gate.ts';
import { checkedPath, volumesOf } from './backup-path.ts';
import type { BackupRepositories } from './backup-repository.service.ts';
import { cancelOperation } from './operation.cancel.ts';

/** Of a manual backup on a pod without a schedule. */
const DEFAULT_RETENTION_DAYS = 30;

export type Backups = ReturnType<typeof createBackups>;

export function createBackups(deps: {
  db: Database;
  clock: Clock;
  random: Random;
  repositories: BackupRepositories;
  /** Has the sync look at this executor at once. */
  wake(executorId: string): void;
}) {
  const { db, clock, repositories } = deps;

  async function page(
    of: { column: 'account_id' | 'pod_id'; id: string },
    query: PageQuery,
  ): Promise<BackupLogPage> {
    const { page: number, limit } = query;
    const { rows, total } = await pageOfBackups(db, of, { offset: (number - 1) * limit, limit });
    const nowMs = clock.now();
    return { items: rows.map((row) => backupRow(row, nowMs)), ...pageFacts(query, total) };
  }

  return {
    /**
     * In `tx`: of the path that the pod's schedule names, else of its first volume. Throws `bad_request`,
     * `pod_state_conflict`, or `BACKUP_STORAGE_BUSY` while another operation runs.
     */
    async trigger(
      tx: Db,
      { identity, actor }: Caller,
      podId: string,
      { name, description }: Partial<ManualBackupTriggerRequest>,
    ): Promise<BackupLog> {
      repositories.requireStorage();
      const pod = await requireOwnPod(tx, identity.accountId, podId, clock.now());
      const config = (await findConfigOf(tx, podId)) ?? null;
      const active = config?.next_at == null ? null : config;
      const volumes = volumesOf(pod);
      const path = checkedPath(active?.backup_path ?? volumes[0] ?? '/', volumes);
      const retentionDays = active?.retention_days ?? DEFAULT_RETENTION_DAYS;
      const words = { name: name ?? null, description: description ?? null };
      const wish = { config: null, path, retentionDays, ...words, actor };
      const begun = await beginBackup(tx, deps, pod, wish);
      if ('activeId' in begun) throw busyError(begun);
      return begun;
    },

    /** Of the account, newest first. */
    list: ({ accountId }: UserIdentity, query: PageQuery) =>
      page({ column: 'account_id', id: accountId }, query),

    /** Of a pod, ended or not, newest first. */
    async listOf(caller: UserIdentity, podId: string, query: PageQuery): Promise<BackupLogPage> {
      await requireAnyOwnPod(db, caller.accountId, podId);
      return page({ column: 'pod_id', id: podId }, query);
    },

    async get(caller: UserIdentity, id: string): Promise<BackupLogResponse> {
      return backupRow(await requireOwnBackup(db, caller, id), clock.now());
    },

    /** Gone at once for its owner; what it holds is removed later. Throws `bad_request` while it runs. */
    remove(caller: UserIdentity, id: string): Promise<BackupLogResponse> {
      return db.transaction().execute(async (tx) => {
        const row = await requireOwnBackup(tx, caller, id);
        const nowMs = clock.now();
        if (row.state !== 'DELETED' && !(await discardBackup(tx, id, 'DELETED', nowMs))) {
          throw new ApiError('bad_request', 'The backup is running', {
            hint: 'Cancel it with POST /backup-logs/{id}/cancel first.',
          });
        }
        return backupRow(await requireOwnBackup(tx, caller, id), nowMs);
      });
    },

    /** At once where its node has not heard of it, else as soon as the node has ended it. Throws `bad_request` for a settled one. */
    async cancel({ identity, actor }: Caller, id: string): Promise<BackupLogResponse> {
      const row = await db.transaction().execute(async (tx) => {
        const found = await requireOwnBackup(tx, identity, id);
        await cancelOperation(tx, deps, { table: 'backup_logs', ...found }, actor);
        return requireOwnBackup(tx, identity, id);
      });
      deps.wake(row.executor_id);
      return backupRow(row, clock.now());
    },
  };
}

/** The caller's own, whatever its state. Throws `not_found` or `forbidden`. */
export async function requireOwnBackup(
  db: Db,
  caller: UserIdentity,
  id: string,
): Promise<BackupLog> {
  const row = await findBackup(db, id);
  if (row === undefined) throw new ApiError('not_found', 'Backup not found');
  if (row.account_id === caller.accountId) return row;
  throw new ApiError('forbidden', 'This backup belongs to another account');
}

/** Ends the schedules of an account that is being deleted, and has what it had backed up removed. */
export async function forgetBackups(tx: Db, accountId: string, nowMs: number): Promise<void> {
  await clearBackupsOf(tx, accountId);
  for (const id of await listBackupIdsOf(tx, accountId)) {
    await discardBackup(tx, id, 'DELETED', nowMs);
  }
}
