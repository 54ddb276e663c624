/** What renters do with restores (contract 9.1). Effects on nodes are left to the sync. */
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { requireAnyOwnPod, requireOwnPod } from '../market/pods/pod-access.ts';
import type { Database, Db, Pod, RestoreLog } from '../platform/database/tables.ts';
import type { Caller, UserIdentity } from '../platform/identity.ts';
import type { Agents } from '../platform/ports.ts';
import { newOperation } from './backup.begin.ts';
import { pageFacts, restoreRow } from './backup.row.ts';
import type {
  PageQuery,
  RestoreLogPage,
  RestoreLogResponse,
  RestoreRequest,
} from './backup.schemas.ts';
import { requireOwnBackup } from './backup.service.ts';
import { findRestore, insertRestore, pageOfRestores } from './backup.store.ts';
import { busyError, busyWith, requireState } from './backup-gate.ts';
import { checkedPath, volumesOf } from './backup-path.ts';
import { type BackupRepositories, holdRepository } from './backup-repository.service.ts';
import { displaceDrill } from './drill.displace.ts';
import { cancelOperation } from './operation.cancel.ts';
import { tellOperation } from './operation.events.ts';

export type Restores = ReturnType<typeof createRestores>;

type BeginDeps = { clock: Clock; random: Random };

/** A restore of one of the caller's backups into `pod`. */
export type NewRestore = {
  pod: Pod;
  caller: Caller;
  request: RestoreRequest;
  occasion: RestoreLog['occasion'];
};

export function createRestores(
  deps: BeginDeps & {
    db: Database;
    repositories: BackupRepositories;
    agents: Pick<Agents, 'clientOf'>;
    /** Has the sync look at this executor at once. */
    wake(executorId: string): void;
  },
) {
  const { db, clock, repositories } = deps;
  return {
    /**
     * In `tx`: one of the account's backups, of whichever pod, into this one. Throws `bad_request`,
     * `pod_state_conflict`, or `BACKUP_STORAGE_BUSY` while another operation runs.
     */
    async trigger(
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
     * Whether the node sees that a `new_only` restore cannot go there. False also where that cannot be known now, or the
     * request is refused for another reason: the node looks again when it restores.
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
        const target = checkedPath(path, volumesOf(pod));
        const { state } = await deps.agents.clientOf(pod.executor_id).restoreTarget(podId, target);
        return state === 'occupied';
      } catch (error) {
        if (error instanceof ApiError) return false;
        throw error;
      }
    },

    /** Of a pod, ended or not, newest first. */
    async list(caller: UserIdentity, podId: string, query: PageQuery): Promise<RestoreLogPage> {
      await requireAnyOwnPod(db, caller.accountId, podId);
      const { page, limit } = query;
      const { rows, total } = await pageOfRestores(db, podId, {
        offset: (page - 1) * limit,
        limit,
      });
      const nowMs = clock.now();
      return { items: rows.map((row) => restoreRow(row, nowMs)), ...pageFacts(query, total) };
    },

    /** At once where its node has not heard of it, else as soon as the node has ended it. Throws `bad_request` for a settled one. */
    async cancel({ identity, actor }: Caller, id: string): Promise<RestoreLogResponse> {
      const row = await db.transaction().execute(async (tx) => {
        const found = await requireOwnRestore(tx, identity, id);
        await cancelOperation(tx, deps, { table: 'restore_logs', ...found }, actor);
        return requireOwnRestore(tx, identity, id);
      });
      deps.wake(row.executor_id);
      return restoreRow(row, clock.now());
    },
  };
}

/**
 * Stores a restore into `pod`; one with the occasion STARTUP begins on the node once the pod runs. Throws `not_found`
 * or `forbidden` for the backup, `bad_request`, `BACKUP_STORAGE_BUSY`. The caller holds the pod, unless it is new.
 */
export async function beginRestore(
  tx: Db,
  deps: BeginDeps,
  { pod, caller, request, occasion }: NewRestore,
): Promise<RestoreLog> {
  const { backup_id: backupId, mode = 'replace' } = request;
  const { repository_id: repositoryId } = await requireOwnBackup(tx, caller.identity, backupId);
  const busy = await busyWith(tx, pod.id, await holdRepository(tx, repositoryId));
  // Read again: nobody removes it any more.
  const backup = await requireOwnBackup(tx, caller.identity, backupId);
  if (backup.state !== 'COMPLETED' || backup.snapshot_id === null) {
    throw new ApiError('bad_request', `The backup is ${backup.state}: there is nothing to restore`);
  }
  const target = checkedPath(request.restore_path, volumesOf(pod));
  if (busy !== null) throw busyError(busy);
  const made = { id: deps.random.uuid(), nowMs: deps.clock.now(), actor: caller.actor };
  const row: RestoreLog = {
    ...newOperation(pod, repositoryId, made),
    backup_id: backup.id,
    snapshot_id: backup.snapshot_id,
    source_path: backup.path,
    target_path: target,
    mode,
    occasion,
    log: '',
  };
  await displaceDrill(tx, deps, pod.id);
  await insertRestore(tx, row);
  const told = { outcome: 'requested', actor: caller.actor } as const;
  await tellOperation(tx, deps, { table: 'restore_logs', ...row }, told);
  return row;
}

/** The 409 of contract 9.1. */
export function targetTaken(path: string): ApiError {
  return new ApiError('conflict', `${path} is there and not empty`, {
    details: { restore_path: path },
    hint: 'Name a path that is new or empty, or restore with the mode `replace`.',
  });
}

async function requireOwnRestore(db: Db, caller: UserIdentity, id: string): Promise<RestoreLog> {
  const row = await findRestore(db, id);
  if (row === undefined) throw new ApiError('not_found', 'Restore not found');
  if (row.account_id === caller.accountId) return row;
  throw new ApiError('forbidden', 'This restore belongs to another account');
}
