/** Requests and responses of the routes of backups, restores and schedules. */
import { z } from 'zod';
import { MAX_CHANGED_PATHS, RESTORE_MODES } from '#shared/api/agent/operations.ts';
import type { FieldNames } from '../platform/edge/field-names.ts';
import {
  displayName,
  displayText,
  NaiveTime,
  optional,
  queryNumber,
  Uuid,
} from '../platform/wire.ts';
import { BACKUP_STATES, RESTORE_STATES, VERIFY_STATUSES } from './operation.state.ts';

const MAX_PAGE = 1_000_000;
const MAX_LIMIT = 100;
const DEFAULT_LIMIT = 20;
const MAX_PATH = 4_096;
const MAX_NAME = 200;
const MAX_DESCRIPTION = 1_000;
/** A month. */
const MAX_FREQUENCY_HOURS = 720;
/** A year. */
const MAX_RETENTION_DAYS = 365;

export const PodIdParams = z.object({ pod_id: Uuid });
export const PodUuidParams = z.object({ pod_uuid: Uuid });

export const PageQuery = z.object({
  page: queryNumber(z.int().min(1).max(MAX_PAGE).default(1)),
  limit: queryNumber(z.int().min(1).max(MAX_LIMIT).default(DEFAULT_LIMIT)),
});
export type PageQuery = z.output<typeof PageQuery>;

/** A page of a list, newest first. */
function pageOf<Item extends z.ZodType>(item: Item) {
  return z.object({
    items: z.array(item),
    /** Items on all pages. */
    total: z.int(),
    page: z.int(),
    limit: z.int(),
    has_next: z.boolean(),
  });
}

/** Any folder of the pod; the service rejects those that are never backed up. */
const RequestedPath = z.string().min(1).max(MAX_PATH);

export const BackupConfigCreate = z
  .object({
    pod_id: Uuid,
    backup_frequency_hours: z.int().min(1).max(MAX_FREQUENCY_HOURS),
    retention_days: z.int().min(1).max(MAX_RETENTION_DAYS),
    backup_path: RequestedPath,
  })
  .meta({ id: 'BackupConfigCreate' });
export type BackupConfigCreate = z.output<typeof BackupConfigCreate>;

export const BackupConfig = z
  .object({
    id: z.uuid(),
    pod_id: z.uuid(),
    /** Node of the pod. */
    pod_executor_id: z.uuid(),
    backup_frequency_hours: z.int(),
    retention_days: z.int(),
    backup_path: z.string(),
    is_active: z.boolean(),
    /** Null when it is not active. */
    next_run_at: NaiveTime.nullable(),
    created_at: NaiveTime,
    updated_at: NaiveTime,
  })
  .meta({ id: 'BackupConfig' });
export type BackupConfigResponse = z.output<typeof BackupConfig>;

export const ManualBackupTriggerRequest = z
  .object({
    name: optional(displayName(MAX_NAME)),
    description: optional(displayText(MAX_DESCRIPTION)),
  })
  .meta({ id: 'ManualBackupTriggerRequest' });
export type ManualBackupTriggerRequest = z.output<typeof ManualBackupTriggerRequest>;

export const BackupTriggered = z
  .object({ success: z.literal(true), backup_log_id: z.uuid() })
  .meta({ id: 'BackupTriggeredResponse' });
export type BackupTriggered = z.output<typeof BackupTriggered>;

/** Fields that logs of backups and restores share. */
const operationShape = {
  id: z.uuid(),
  pod_id: z.uuid(),
  /** Percent. */
  progress: z.number(),
  started_at: NaiveTime.nullable(),
  completed_at: NaiveTime.nullable(),
  error_message: z.string().nullable(),
  /** Stable code for programs; null without a failure. */
  error_code: z.string().nullable(),
  created_at: NaiveTime,
  last_heartbeat_at: NaiveTime.nullable(),
  total_files: z.int().nullable(),
  processed_files: z.int().nullable(),
  total_bytes: z.int().nullable(),
  processed_bytes: z.int().nullable(),
  elapsed_seconds: z.number().nullable(),
  throughput_bytes_per_second: z.number().nullable(),
  estimated_remaining_seconds: z.number().nullable(),
  status_message: z.string().nullable(),
};

export const BackupLog = z
  .object({
    ...operationShape,
    backup_config_id: z.uuid().nullable(),
    name: z.string().nullable(),
    description: z.string().nullable(),
    backup_path: z.string(),
    status: z.enum(BACKUP_STATES),
    stage: z.enum(['QUEUED', 'PREPARING', 'UPLOADING', 'VERIFYING']).nullable(),
    backup_volume_id: z.null(),
    /** Removal of the data of a deleted or expired backup; BLOCKED: status_message contains the reason. */
    deletion_state: z.enum(['PENDING', 'BLOCKED', 'DONE']).nullable(),
    /** Time of the removal. */
    physical_cleanup_at: NaiveTime.nullable(),
    /** Hash of the snapshot, which contains the hashes of all its data. */
    sha256: z.string().nullable(),
    /** `partial`: some files could not be read. */
    quality: z.string().nullable(),
    changed_files: z
      .array(z.string())
      .max(MAX_CHANGED_PATHS)
      .nullable()
      .describe(
        'Paths of files that changed between the time at which they were read and the end of the backup: their content in the backup may be older or mixed. At most 100. Null before the end, and if the node cannot list them.',
      ),
    changed_files_total: z
      .int()
      .nullable()
      .describe('Number of files that changed; more than `changed_files` has if that is full.'),
    expires_at: NaiveTime.nullable(),
    /** Result of the last drill, which reads a sample of the backup. INCONCLUSIVE is not a verdict on the backup. */
    verify_status: z.enum(VERIFY_STATUSES).nullable(),
    /** Time of the last PASSED or FAILED. */
    verified_at: NaiveTime.nullable(),
    verify_error: z.string().nullable(),
    /** Stable code for programs. */
    verify_error_code: z.string().nullable(),
    /** Files and bytes that the last passed drill read. */
    verified_files: z.int().nullable(),
    verified_bytes: z.int().nullable(),
  })
  .meta({ id: 'BackupLog' });
export type BackupLogResponse = z.output<typeof BackupLog>;

export const BackupLogPage = pageOf(BackupLog).meta({ id: 'BackupLogPage' });
export type BackupLogPage = z.output<typeof BackupLogPage>;

export const RestoreRequest = z
  .object({
    /** Id of a backup log. */
    backup_id: Uuid,
    restore_path: RequestedPath,
    /** `replace` when absent. */
    mode: optional(z.enum(RESTORE_MODES)),
  })
  .meta({ id: 'RestoreRequest' });
export type RestoreRequest = z.output<typeof RestoreRequest>;

export const RestoreTriggered = z
  .object({ success: z.literal(true), restore_log_id: z.uuid() })
  .meta({ id: 'RestoreTriggeredResponse' });
export type RestoreTriggered = z.output<typeof RestoreTriggered>;

export const RestoreLog = z
  .object({
    ...operationShape,
    backup_id: z.uuid(),
    status: z.enum(RESTORE_STATES),
    stage: z.enum(['PREPARING', 'RESTORING', 'FINALIZING']).nullable(),
    /** Log lines of the node. */
    logs: z.string().nullable(),
    restore_path: z.string(),
    backup_engine: z.literal('restic'),
    restore_mode: z.enum(['STARTUP', 'LIVE']),
    mode: z.enum(RESTORE_MODES),
  })
  .meta({ id: 'RestoreLogResponse' });
export type RestoreLogResponse = z.output<typeof RestoreLog>;

export const RestoreLogPage = pageOf(RestoreLog).meta({ id: 'PaginatedResponse' });
export type RestoreLogPage = z.output<typeof RestoreLogPage>;

export const BACKUP_CONFIG_FIELD_NAMES: FieldNames = {
  synonyms: {
    path: 'backup_path',
    frequency: 'backup_frequency_hours',
    frequency_hours: 'backup_frequency_hours',
    interval_hours: 'backup_frequency_hours',
    retention: 'retention_days',
  },
  echoed: Object.keys(BackupConfig.shape),
};

export const BACKUP_FIELD_NAMES: FieldNames = {
  elsewhere: { backup_path: 'POST /backup-configs', retention_days: 'POST /backup-configs' },
};

export const RESTORE_FIELD_NAMES: FieldNames = {
  synonyms: {
    backup: 'backup_id',
    backup_log_id: 'backup_id',
    path: 'restore_path',
    target: 'restore_path',
    target_path: 'restore_path',
  },
};
