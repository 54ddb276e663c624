/** Functions that the routes call for backups, restores and restore drills. Only operation-sync.ts calls nodes. */
import { ApiError } from '#shared/runtime/errors.ts';
import { requireAnyOwnPod, requireOwnPod } from '../market/pods/pod-access.ts';
import type { BackupLog, Database, Db, RestoreLog } from '../platform/database/tables.ts';
import { lockRow } from '../platform/database/transactions.ts';
import type { Caller, UserIdentity } from '../platform/identity.ts';
import type { Agents } from '../platform/ports.ts';
import type {
  BackupLogPage,
  BackupLogResponse,
  ManualBackupTriggerRequest,
  PageQuery,
  RestoreLogPage,
  RestoreLogResponse,
  RestoreRequest,
} from './backup.schemas.ts';
import {
  type BackupDeps,
  beginBackup,
  beginDrill,
  beginRestore,
  cancelOperation,
  conflictError,
  isConflict,
  requireOwnBackup,
  requireOwnRestore,
  requireState,
} from './begin-operation.ts';
import { findOpenDrill, pageOfBackups, pageOfRestores } from './operation.store.ts';
import { backupRow, pageFacts, restoreRow } from './operation-response.ts';
import { checkedPath, defaultPathOf } from './pod-path.ts';
import { discardBackup } from './retention.store.ts';
import { findConfigOf, findDrillExecutor } from './schedule.store.ts';

/** Retention of a manual backup of a pod without a schedule. */
const DEFAULT_RETENTION_DAYS = 30;

export type OperationServiceDeps = BackupDeps & {
  db: Database;
  agents: Pick<Agents, 'clientOf'>;
  /** Makes the sync handle this executor at once. */
  wake(executorId: string): void;
};

export type OperationService = ReturnType<typeof createOperationService>;

/** The operations of the routes; `tx` is the transaction of the request. */
export function createOperationService(deps: OperationServiceDeps) {
  const { db, clock, repositories } = deps;

  async function listBackups(
    of: { column: 'account_id' | 'pod_id'; id: string },
    query: PageQuery,
  ): Promise<BackupLogPage> {
    const { rows, total } = await pageOfBackups(db, of, offsetOf(query));
    const nowMs = clock.now();
    return { items: rows.map((row) => backupRow(row, nowMs)), ...pageFacts(query, total) };
  }

  return {
    /**
     * Backs up the path of the pod's schedule. Without a schedule, backs up the pod's first volume, or `/root`. Throws
     * `bad_request`, `pod_state_conflict`, or `BACKUP_STORAGE_BUSY` while another operation runs.
     */
    async beginBackup(
      tx: Db,
      { identity, actor }: Caller,
      podId: string,
      { name, description }: Partial<ManualBackupTriggerRequest>,
    ): Promise<BackupLog> {
      repositories.requireStorage();
      const pod = await requireOwnPod(tx, identity.accountId, podId, clock.now());
      const config = (await findConfigOf(tx, podId)) ?? null;
      const active = config?.next_at == null ? null : config;
      const path = checkedPath(active?.backup_path ?? defaultPathOf(pod));
      const retentionDays = active?.retention_days ?? DEFAULT_RETENTION_DAYS;
      const texts = { name: name ?? null, description: description ?? null };
      const request = { config: null, path, retentionDays, ...texts, actor };
      const begun = await beginBackup(tx, deps, pod, request);
      if (isConflict(begun)) throw conflictError(begun);
      return begun;
    },

    /**
     * Restores one of the account's backups, of any of its pods, into this pod. Throws `bad_request`,
     * `pod_state_conflict`, or `BACKUP_STORAGE_BUSY` while another operation runs.
     */
    async beginRestore(
      tx: Db,
      caller: Caller,
      podId: string,
      request: RestoreRequest,
    ): Promise<RestoreLog> {
      repositories.requireStorage();
      const pod = await requireOwnPod(tx, caller.identity.accountId, podId, clock.now());
      requireState(pod, 'restore');
      return beginRestore(tx, deps, { pod, caller, request, occasion: 'LIVE' });
    },

    /**
     * Begins a drill: a node reads a sample of the backup, and no pod changes. If a drill of this backup is open,
     * returns the drill's state. Throws `bad_request` for a backup that is not COMPLETED, and `BACKUP_STORAGE_BUSY`
     * while another operation runs on the backup's pod. `executorId`: node of a new drill.
     */
    async beginDrill(
      tx: Db,
      { identity, actor }: Caller,
      id: string,
    ): Promise<{ executorId: string | null; log: BackupLogResponse }> {
      repositories.requireStorage();
      const { pod_id: podId } = await requireOwnBackup(tx, identity, id);
      await lockRow(tx, 'pods', podId);
      const backup = await requireOwnBackup(tx, identity, id);
      const answer = async (executorId: string | null) => {
        const log = backupRow(await requireOwnBackup(tx, identity, id), clock.now());
        return { executorId, log };
      };
      if (backup.state !== 'COMPLETED') {
        throw new ApiError(
          'bad_request',
          `The backup is ${backup.state} and has no data to verify`,
        );
      }
      if ((await findOpenDrill(tx, podId))?.backup_id === id) return answer(null);
      const executorId = await findDrillExecutor(tx, { id: podId, account_id: backup.account_id });
      const request = { backup, executorId, occasion: 'REQUESTED', actor } as const;
      const begun = await beginDrill(tx, deps, request);
      if (begun !== null && isConflict(begun)) throw conflictError(begun);
      return answer(begun?.executor_id ?? null);
    },

    /**
     * Returns true if the node reports that the target of a `new_only` restore is not empty. Returns false if the node
     * cannot be queried, or rejects the request for another reason: the node checks the target again before the
     * restore.
     */
    async isTargetTaken(
      { identity }: Caller,
      podId: string,
      { restore_path: path, mode }: RestoreRequest,
    ): Promise<boolean> {
      if (mode !== 'new_only') return false;
      try {
        const pod = await requireAnyOwnPod(db, identity.accountId, podId);
        requireState(pod, 'restore');
        const target = checkedPath(path);
        const { state } = await deps.agents.clientOf(pod.executor_id).restoreTarget(podId, target);
        return state === 'occupied';
      } catch (error) {
        if (error instanceof ApiError) return false;
        throw error;
      }
    },

    /** Returns the account's backups, newest first. */
    listBackups: ({ accountId }: UserIdentity, query: PageQuery) =>
      listBackups({ column: 'account_id', id: accountId }, query),

    /** Returns the backups of a pod, whether or not the pod has ended, newest first. */
    async listBackupsOf(
      caller: UserIdentity,
      podId: string,
      query: PageQuery,
    ): Promise<BackupLogPage> {
      await requireAnyOwnPod(db, caller.accountId, podId);
      return listBackups({ column: 'pod_id', id: podId }, query);
    },

    /** Returns the restores of a pod, whether or not the pod has ended, newest first. */
    async listRestoresOf(
      caller: UserIdentity,
      podId: string,
      query: PageQuery,
    ): Promise<RestoreLogPage> {
      await requireAnyOwnPod(db, caller.accountId, podId);
      const { rows, total } = await pageOfRestores(db, podId, offsetOf(query));
      const nowMs = clock.now();
      return { items: rows.map((row) => restoreRow(row, nowMs)), ...pageFacts(query, total) };
    },

    async getBackup(caller: UserIdentity, id: string): Promise<BackupLogResponse> {
      return backupRow(await requireOwnBackup(db, caller, id), clock.now());
    },

    /** Marks a backup as deleted; its data is removed later. Throws `bad_request` while the backup runs. */
    removeBackup(caller: UserIdentity, id: string): Promise<BackupLogResponse> {
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

    /** Throws `bad_request` for a backup that has ended. */
    async cancelBackup({ identity, actor }: Caller, id: string): Promise<BackupLogResponse> {
      const row = await db.transaction().execute(async (tx) => {
        const found = await requireOwnBackup(tx, identity, id);
        await cancelOperation(tx, deps, { kind: 'backup', ...found }, actor);
        return requireOwnBackup(tx, identity, id);
      });
      deps.wake(row.executor_id);
      return backupRow(row, clock.now());
    },

    /** Throws `bad_request` for a restore that has ended. */
    async cancelRestore({ identity, actor }: Caller, id: string): Promise<RestoreLogResponse> {
      const row = await db.transaction().execute(async (tx) => {
        const found = await requireOwnRestore(tx, identity, id);
        await cancelOperation(tx, deps, { kind: 'restore', ...found }, actor);
        return requireOwnRestore(tx, identity, id);
      });
      deps.wake(row.executor_id);
      return restoreRow(row, clock.now());
    },
  };
}

function offsetOf({ page, limit }: PageQuery) {
  return { offset: (page - 1) * limit, limit };
}
