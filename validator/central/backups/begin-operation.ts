/** Begins and cancels backups, restores and restore drills inside a transaction. */
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { type PodState, podStateOf } from '../market/pods/pod.state.ts';
import type {
  BackupConfig,
  BackupDrill,
  BackupLog,
  BackupRepository,
  Db,
  Pod,
  RestoreLog,
} from '../platform/database/tables.ts';
import { type Actor, type Caller, SYSTEM_ACTOR, type UserIdentity } from '../platform/identity.ts';
import type { RestoreRequest } from './backup.schemas.ts';
import {
  cancelUnsent,
  changeOpen,
  findBackup,
  findOpenDrill,
  findOpenOf,
  findRestore,
  insertOperation,
} from './operation.store.ts';
import { newOperation, type Operation } from './operation.ts';
import { recordVerification, rulesOf } from './operation-kinds.ts';
import { checkedPath } from './pod-path.ts';
import { lockRepository, type Repositories } from './repository.service.ts';
import { setNextDrill } from './schedule.store.ts';

/** Delay before the retry of a scheduled drill that could not begin or was displaced by another operation. */
export const DRILL_RETRY_MS = 600_000;
const NO_NODE =
  'No verified node has a pod of the account, and other nodes must not read the account’s data';

/** States in which the node can read the pod's data. */
const BACKUP_POD_STATES: readonly PodState[] = [
  'running',
  'rebooting',
  'reboot_failed',
  'unknown',
  'failed',
  'stopped',
];
/** States in which the pod's container can be stopped and started. */
const RESTORE_POD_STATES: readonly PodState[] = ['running', 'unknown', 'rebooting'];

export type BeginDeps = { clock: Clock; random: Random };

/** The open backup, restore or drill, or the cleanup of the repository (null), that blocks a new operation. */
export type Conflict = { message: string; activeId: string | null };

export function isConflict<Row extends object>(begun: Row | Conflict): begun is Conflict {
  return 'activeId' in begun;
}

/** Returns 409 `BACKUP_STORAGE_BUSY`. Clients read `detail` outside the error envelope. */
export function conflictError({ message, activeId }: Conflict): ApiError {
  const facts = { active_operation_id: activeId };
  return new ApiError('BACKUP_STORAGE_BUSY', message, {
    extra: { detail: { message, ...facts } },
    details: facts,
    ...(activeId === null ? { hint: 'Retry in a minute.' } : {}),
  });
}

/** Returns null if an operation may begin. The caller has locked the pod and the repository. */
async function conflictOn(
  tx: Db,
  podId: string,
  repository: BackupRepository,
): Promise<Conflict | null> {
  const open = await findOpenOf(tx, podId);
  if (open !== undefined) {
    return { message: `A ${open.kind} of this pod is running`, activeId: open.id };
  }
  if (repository.cleaning_boot_id === null) return null;
  return { message: 'Old backups are being removed from the storage now', activeId: null };
}

/** Throws `pod_state_conflict` if the state of the pod does not allow it. */
export function requireState(pod: Pod, kind: 'backup' | 'restore'): void {
  const states = kind === 'backup' ? BACKUP_POD_STATES : RESTORE_POD_STATES;
  const state = podStateOf(pod.state);
  if (states.includes(state)) return;
  throw new ApiError('pod_state_conflict', `A ${kind} is not possible while the pod is ${state}`);
}

/** Stores a new operation and records it. Backups and restores cancel the open drill of the pod. */
async function begin(tx: Db, deps: BeginDeps, operation: Operation, actor: Actor): Promise<void> {
  if (operation.kind !== 'drill') await displaceDrill(tx, deps, operation.pod_id);
  await insertOperation(tx, operation);
  const transition = { to: 'PENDING', actor, atMs: deps.clock.now() } as const;
  await rulesOf(operation).record(tx, deps, operation, transition);
}

/** Cancels the open drill of a pod in favour of work with priority. The caller has locked the pod. */
async function displaceDrill(tx: Db, deps: BeginDeps, podId: string): Promise<void> {
  const drill = await findOpenDrill(tx, podId);
  if (drill === undefined) return;
  await cancelOperation(tx, deps, { kind: 'drill', ...drill }, SYSTEM_ACTOR);
  if (drill.occasion === 'REQUESTED') return;
  await setNextDrill(tx, podId, deps.clock.now() + DRILL_RETRY_MS);
}

/**
 * Cancels at once an operation that was not sent; operation-sync.ts cancels a sent operation on its node. Repeated
 * calls have no effect. Throws `bad_request` if the operation has ended.
 */
export async function cancelOperation(
  tx: Db,
  deps: BeginDeps,
  operation: Operation,
  actor: Actor,
): Promise<void> {
  const nowMs = deps.clock.now();
  if (operation.state === 'CANCELLED') return;
  if (await cancelUnsent(tx, operation, nowMs)) {
    const transition = { to: 'CANCELLED', actor, atMs: nowMs } as const;
    return rulesOf(operation).record(tx, deps, operation, transition);
  }
  if (operation.completed_at !== null) {
    throw new ApiError('bad_request', `The operation is already ${operation.state}`, {
      hint: 'Only a PENDING or IN_PROGRESS operation can be cancelled.',
    });
  }
  if (operation.cancel_at === null) await changeOpen(tx, operation, { cancel_at: nowMs });
}

export type NewBackup = {
  config: BackupConfig | null;
  path: string;
  retentionDays: number;
  name: string | null;
  description: string | null;
  actor: Actor;
};

export type BackupDeps = BeginDeps & { repositories: Repositories };

/**
 * Begins a backup, or returns the operation that blocks it. Throws `pod_state_conflict`. The caller has locked the pod.
 */
export async function beginBackup(
  tx: Db,
  deps: BackupDeps,
  pod: Pod,
  request: NewBackup,
): Promise<BackupLog | Conflict> {
  requireState(pod, 'backup');
  const repository = await deps.repositories.ofPod(tx, pod);
  const conflict = await conflictOn(tx, pod.id, repository);
  if (conflict !== null) return conflict;
  const row = newBackup(deps, pod, repository, request);
  await begin(tx, deps, { kind: 'backup', ...row }, request.actor);
  return row;
}

/**
 * Begins a scheduled backup. If that is impossible, stores a SKIPPED log with the reason. Returns null during a cleanup
 * of the repository; the caller then retries later. The caller has locked the pod.
 */
export async function beginScheduledBackup(
  tx: Db,
  deps: BackupDeps,
  pod: Pod,
  config: BackupConfig,
): Promise<BackupLog | null> {
  const { backup_path: path, retention_days: retentionDays } = config;
  const actor = SYSTEM_ACTOR;
  const request = { config, path, retentionDays, name: null, description: null, actor };
  const begun = await beginBackup(tx, deps, pod, request).catch((error: unknown): Conflict => {
    if (error instanceof ApiError) return { message: error.message, activeId: pod.id };
    throw error;
  });
  if (!isConflict(begun)) return begun;
  if (begun.activeId === null) return null;
  const repository = await deps.repositories.ofPod(tx, pod);
  const skipped: BackupLog = {
    ...newBackup(deps, pod, repository, request),
    state: 'SKIPPED',
    error_message: begun.message,
    completed_at: deps.clock.now(),
  };
  await insertOperation(tx, { kind: 'backup', ...skipped });
  return skipped;
}

function newBackup(
  { clock, random }: BeginDeps,
  pod: Pod,
  repository: BackupRepository,
  { config, name, description, path, retentionDays, actor }: NewBackup,
): BackupLog {
  return {
    ...newOperation(pod, repository.id, { id: random.uuid(), nowMs: clock.now(), actor }),
    cleanup_after_ms: 0,
    config_id: config?.id ?? null,
    name,
    description,
    path,
    retention_days: retentionDays,
    snapshot_id: null,
    quality: null,
    changed_files_json: null,
    expires_at: null,
    cleanup_at: null,
    cleanup_problem: null,
    cleaned_at: null,
    verify_status: null,
    verified_at: null,
    verify_error: null,
    verify_error_code: null,
    verified_files: null,
    verified_bytes: null,
  };
}

/** A restore of one of the caller's backups into `pod`. */
export type NewRestore = {
  pod: Pod;
  caller: Caller;
  request: RestoreRequest;
  occasion: RestoreLog['occasion'];
};

/**
 * Begins a restore into `pod`. A restore with the occasion STARTUP is sent once the pod's container has started. Throws
 * `not_found` or `forbidden` for the backup, `bad_request`, or `BACKUP_STORAGE_BUSY`. The caller has locked the pod or
 * creates it.
 */
export async function beginRestore(
  tx: Db,
  deps: BeginDeps,
  { pod, caller, request, occasion }: NewRestore,
): Promise<RestoreLog> {
  const { backup_id: backupId, mode = 'replace', salvage = false } = request;
  const { repository_id: repositoryId } = await requireOwnBackup(tx, caller.identity, backupId);
  const conflict = await conflictOn(tx, pod.id, await lockRepository(tx, repositoryId));
  // Reads the backup again: while the repository is locked, the backup cannot be removed.
  const backup = await requireOwnBackup(tx, caller.identity, backupId);
  if (backup.state !== 'COMPLETED' || backup.snapshot_id === null) {
    throw new ApiError('bad_request', `The backup is ${backup.state} and has no data to restore`);
  }
  const target = checkedPath(request.restore_path);
  if (conflict !== null) throw conflictError(conflict);
  const { actor } = caller;
  const row: RestoreLog = {
    ...newOperation(pod, repositoryId, {
      id: deps.random.uuid(),
      nowMs: deps.clock.now(),
      actor,
    }),
    backup_id: backup.id,
    snapshot_id: backup.snapshot_id,
    source_path: backup.path,
    target_path: target,
    mode,
    occasion,
    salvage: salvage ? 1 : 0,
    lost_files_json: null,
    restarted_pod: null,
    log: '',
  };
  await begin(tx, deps, { kind: 'restore', ...row }, actor);
  return row;
}

/** Returns 409 for a `new_only` restore whose target is not empty. */
export function targetTaken(path: string): ApiError {
  return new ApiError('conflict', `${path} exists and is not empty`, {
    details: { restore_path: path },
    hint: 'Name a path that is new or empty, or restore with the mode `replace`.',
  });
}

export type NewDrill = {
  backup: BackupLog;
  /** Node that runs the drill; null if no node can run it. */
  executorId: string | null;
  occasion: BackupDrill['occasion'];
  actor: Actor;
};

/**
 * Begins a drill, or returns the operation that blocks it. Returns null if the backup no longer has a snapshot, or if
 * no node can run the drill, which is recorded as INCONCLUSIVE. The caller has locked the pod.
 */
export async function beginDrill(
  tx: Db,
  deps: BeginDeps,
  request: NewDrill,
): Promise<BackupDrill | Conflict | null> {
  const { occasion, actor, executorId } = request;
  const { pod_id: podId, account_id, repository_id: repositoryId } = request.backup;
  const conflict = await conflictOn(tx, podId, await lockRepository(tx, repositoryId));
  if (conflict !== null) return conflict;
  const open = await findOpenDrill(tx, podId);
  if (open !== undefined) {
    return { message: 'A backup of this pod is being verified', activeId: open.id };
  }
  // Reads the backup again: while the repository is locked, the backup cannot be removed.
  const backup = await findBackup(tx, request.backup.id);
  if (backup?.state !== 'COMPLETED' || backup.snapshot_id === null) return null;
  if (executorId === null) {
    await recordVerification(tx, deps, drillOnNoNode(backup), {
      status: 'INCONCLUSIVE',
      actor,
      error: { code: 'NoNode', message: NO_NODE },
    });
    return null;
  }
  const pod = { id: podId, account_id, executor_id: executorId };
  const created = { id: deps.random.uuid(), nowMs: deps.clock.now(), actor };
  const row: BackupDrill = {
    ...newOperation(pod, repositoryId, created),
    backup_id: backup.id,
    snapshot_id: backup.snapshot_id,
    occasion,
  };
  await begin(tx, deps, { kind: 'drill', ...row }, actor);
  return row;
}

function drillOnNoNode({ id, account_id, pod_id, executor_id }: BackupLog) {
  return { backup_id: id, account_id, pod_id, executor_id };
}

/** Returns a backup of the caller in any state. Throws `not_found` or `forbidden`. */
export async function requireOwnBackup(
  db: Db,
  caller: UserIdentity,
  id: string,
): Promise<BackupLog> {
  return requireOwn(await findBackup(db, id), caller, 'backup');
}

export async function requireOwnRestore(
  db: Db,
  caller: UserIdentity,
  id: string,
): Promise<RestoreLog> {
  return requireOwn(await findRestore(db, id), caller, 'restore');
}

function requireOwn<Row extends { account_id: string }>(
  row: Row | undefined,
  { accountId }: UserIdentity,
  kind: 'backup' | 'restore',
): Row {
  const title = kind === 'backup' ? 'Backup' : 'Restore';
  if (row === undefined) throw new ApiError('not_found', `${title} not found`);
  if (row.account_id === accountId) return row;
  throw new ApiError('forbidden', `This ${kind} belongs to another account`);
}
