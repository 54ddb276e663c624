/** Converts rows of schedules, backups and restores to the responses of the API. Pure. */

import { FileList } from '#shared/api/agent/operations.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import type { OperationColumns } from '../platform/database/tables/backups.ts';
import type { BackupConfig, BackupLog, RestoreLog } from '../platform/database/tables.ts';
import {
  type BackupConfigResponse,
  type BackupLogResponse,
  BackupLog as BackupLogSchema,
  type PageQuery,
  type RestoreLogResponse,
  RestoreLog as RestoreLogSchema,
} from './backup.schemas.ts';

const MS_PER_SECOND = 1_000;

export function configRow(config: BackupConfig, executorId: string): BackupConfigResponse {
  return {
    id: config.id,
    pod_id: config.pod_id,
    pod_executor_id: executorId,
    backup_frequency_hours: config.backup_frequency_hours,
    retention_days: config.retention_days,
    backup_path: config.backup_path,
    is_active: config.next_at !== null,
    next_run_at: timeOf(config.next_at),
    created_at: naiveUtc(config.created_at),
    updated_at: naiveUtc(config.updated_at),
  };
}

export function backupRow(row: BackupLog, nowMs: number): BackupLogResponse {
  const changed = fileListOf(row.changed_files_json);
  return {
    ...operationRow(row, nowMs),
    backup_config_id: row.config_id,
    name: row.name,
    description: row.description,
    backup_path: row.path,
    status: row.state,
    stage: BackupLogSchema.shape.stage.catch(null).parse(row.stage?.toUpperCase() ?? null),
    backup_volume_id: null,
    deletion_state: deletionStateOf(row),
    physical_cleanup_at: timeOf(row.cleaned_at),
    sha256: row.snapshot_id,
    quality: row.quality,
    changed_files: changed?.paths ?? null,
    changed_files_total: changed?.count ?? null,
    expires_at: timeOf(row.expires_at),
    status_message:
      row.cleanup_problem ??
      messageOf(row) ??
      damageMessageOf(row) ??
      qualityMessageOf(row) ??
      changesMessageOf(changed),
    verify_status: row.verify_status,
    verified_at: timeOf(row.verified_at),
    verify_error: row.verify_error,
    verify_error_code: row.verify_error_code,
    verified_files: row.verified_files,
    verified_bytes: row.verified_bytes,
  };
}

export function restoreRow(row: RestoreLog, nowMs: number): RestoreLogResponse {
  const lost = fileListOf(row.lost_files_json);
  return {
    ...operationRow(row, nowMs),
    backup_id: row.backup_id,
    status: RestoreLogSchema.shape.status.parse(row.state),
    stage: restoreStageOf(row.stage),
    logs: row.log === '' ? null : row.log,
    restore_path: row.target_path,
    backup_engine: 'restic',
    restore_mode: row.occasion,
    mode: row.mode,
    salvage: row.salvage === 1,
    lost_files: lost?.paths ?? null,
    lost_files_total: lost?.count ?? null,
    restarted_pod: row.restarted_pod === null ? null : row.restarted_pod === 1,
  };
}

/** Returns the fields of a page other than its items. */
export function pageFacts({ page, limit }: PageQuery, total: number) {
  return { total, page, limit, has_next: page * limit < total };
}

function operationRow(row: OperationColumns, nowMs: number) {
  return {
    id: row.id,
    pod_id: row.pod_id,
    progress: row.percent,
    started_at: timeOf(row.started_at),
    completed_at: timeOf(row.completed_at),
    // While the operation is open, the column contains the reason why the operation has not begun.
    error_message: row.completed_at === null ? null : row.error_message,
    error_code: row.error_code,
    created_at: naiveUtc(row.created_at),
    last_heartbeat_at: row.started_at === null ? null : naiveUtc(row.heartbeat_at),
    total_files: row.total_files,
    processed_files: row.processed_files,
    total_bytes: row.total_bytes,
    processed_bytes: row.processed_bytes,
    elapsed_seconds:
      row.started_at === null
        ? null
        : ((row.completed_at ?? nowMs) - row.started_at) / MS_PER_SECOND,
    throughput_bytes_per_second: row.bytes_per_second,
    estimated_remaining_seconds: row.completed_at === null ? row.remaining_seconds : null,
    status_message: messageOf(row),
  };
}

function messageOf({ cancel_at, completed_at, error_message }: OperationColumns): string | null {
  return cancel_at !== null && completed_at === null ? 'Being cancelled' : error_message;
}

function qualityMessageOf({ quality }: BackupLog): string | null {
  return quality === 'partial' ? 'Some files could not be read and are not in the backup' : null;
}

function damageMessageOf({ state, verify_error: error, verify_status }: BackupLog): string | null {
  if (state !== 'COMPLETED' || verify_status !== 'FAILED' || error === null) return null;
  return `${error}. Restore the backup with \`salvage\` to get everything that can be read`;
}

function fileListOf(json: string | null): FileList | null {
  return json === null ? null : FileList.parse(JSON.parse(json));
}

function changesMessageOf(changed: FileList | null): string | null {
  if (changed === null || changed.count === 0) return null;
  const files = changed.count === 1 ? '1 file' : `${changed.count} files`;
  return `${files} changed while they were read`;
}

function deletionStateOf(row: BackupLog): BackupLogResponse['deletion_state'] {
  if (row.cleaned_at !== null) return 'DONE';
  if (row.cleanup_at !== null) return row.cleanup_problem === null ? 'PENDING' : 'BLOCKED';
  return row.state === 'DELETED' ? 'DONE' : null;
}

function restoreStageOf(stage: string | null): RestoreLogResponse['stage'] {
  switch (stage) {
    case 'queued':
      return 'PREPARING';
    case 'fetching':
    case 'verifying':
      return 'RESTORING';
    case 'stopping':
    case 'swapping':
    case 'starting':
    case 'committed':
      return 'FINALIZING';
    default:
      return null;
  }
}

function timeOf(epochMs: number | null): string | null {
  return epochMs === null ? null : naiveUtc(epochMs);
}
