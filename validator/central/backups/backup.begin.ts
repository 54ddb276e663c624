/** How backups begin, whoever wants them: as a row that the sync brings to the node. */

import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { OperationColumns } from '../platform/database/tables/backups.ts';
import type {
  BackupConfig,
  BackupLog,
  BackupRepository,
  Db,
  Pod,
} from '../platform/database/tables.ts';
import { type Actor, SYSTEM_ACTOR } from '../platform/identity.ts';
import { insertBackup } from './backup.store.ts';
import { type Busy, busyWith, requireState } from './backup-gate.ts';
import type { BackupRepositories } from './backup-repository.service.ts';
import { displaceDrill } from './drill.displace.ts';
import { tellOperation } from './operation.events.ts';

export type BeginDeps = { clock: Clock; random: Random; repositories: BackupRepositories };

export type BackupWish = {
  config: BackupConfig | null;
  path: string;
  retentionDays: number;
  name: string | null;
  description: string | null;
  actor: Actor;
};

/** The new backup, or what stands in its way. Throws `pod_state_conflict`. The caller holds the pod. */
export async function beginBackup(
  tx: Db,
  deps: BeginDeps,
  pod: Pod,
  wish: BackupWish,
): Promise<BackupLog | Busy> {
  requireState(pod, 'backup');
  const repository = await deps.repositories.ofPod(tx, pod);
  const busy = await busyWith(tx, pod.id, repository);
  if (busy !== null) return busy;
  await displaceDrill(tx, deps, pod.id);
  const row = newBackup(deps, pod, repository, wish);
  await insertBackup(tx, row);
  const { actor } = wish;
  await tellOperation(tx, deps, { table: 'backup_logs', ...row }, { outcome: 'requested', actor });
  return row;
}

/**
 * A scheduled one; where it cannot begin, a log that says why. Null while the repository is being cleaned, which is soon
 * over. The caller holds the pod.
 */
export async function beginScheduled(
  tx: Db,
  deps: BeginDeps,
  pod: Pod,
  config: BackupConfig,
): Promise<BackupLog | null> {
  const { backup_path: path, retention_days: retentionDays } = config;
  const actor = SYSTEM_ACTOR;
  const wish = { config, path, retentionDays, name: null, description: null, actor };
  const begun = await beginBackup(tx, deps, pod, wish).catch((error: unknown): Busy => {
    if (error instanceof ApiError) return { message: error.message, activeId: pod.id };
    throw error;
  });
  if (!('activeId' in begun)) return begun;
  if (begun.activeId === null) return null;
  const repository = await deps.repositories.ofPod(tx, pod);
  const skipped: BackupLog = {
    ...newBackup(deps, pod, repository, wish),
    state: 'SKIPPED',
    error_message: begun.message,
    completed_at: deps.clock.now(),
  };
  await insertBackup(tx, skipped);
  return skipped;
}

function newBackup(
  { clock, random }: BeginDeps,
  pod: Pod,
  repository: BackupRepository,
  wish: BackupWish,
): BackupLog {
  return {
    ...newOperation(pod, repository.id, {
      id: random.uuid(),
      nowMs: clock.now(),
      actor: wish.actor,
    }),
    config_id: wish.config?.id ?? null,
    name: wish.name,
    description: wish.description,
    path: wish.path,
    retention_days: wish.retentionDays,
    ...{ snapshot_id: null, quality: null, expires_at: null },
    ...{ cleanup_at: null, cleanup_problem: null, cleaned_at: null },
    ...{ verify_status: null, verified_at: null, verify_error: null, verify_error_code: null },
    ...{ verified_files: null, verified_bytes: null },
  };
}

/** What every operation begins with. */
export function newOperation(
  pod: Pick<Pod, 'id' | 'account_id' | 'executor_id'>,
  repositoryId: string,
  { id, nowMs, actor }: { id: string; nowMs: number; actor: Actor },
): OperationColumns {
  return {
    id,
    account_id: pod.account_id,
    pod_id: pod.id,
    executor_id: pod.executor_id,
    repository_id: repositoryId,
    state: 'PENDING',
    ...{ stage: null, percent: 0, bytes_per_second: null, remaining_seconds: null },
    ...{ total_files: null, processed_files: null, total_bytes: null, processed_bytes: null },
    ...{ sent_at: null, cancel_at: null, node_heartbeat_ms: null, abandoned_at: null },
    ...{ error_code: null, error_message: null, started_at: null, completed_at: null },
    heartbeat_at: nowMs,
    request_id: actor.requestId,
    created_at: nowMs,
  };
}
