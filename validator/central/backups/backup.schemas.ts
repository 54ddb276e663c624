/** Requests and responses of the routes of backups, restores and schedules. */

import { z } from 'zod';
import { MAX_LISTED_PATHS, RESTORE_MODES } from '#shared/api/agent/operations.ts';
import { described } from '#shared/api/described.ts';
import type { FieldNames } from '../platform/edge/field-names.ts';
import { EXAMPLE_IDS } from '../platform/openapi/example-ids.ts';
import {
  CREATED_AT,
  HAS_NEXT,
  LIMIT,
  PAGE,
  SUCCESS,
  TOTAL,
  UPDATED_AT,
} from '../platform/openapi/field-texts.ts';
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
/** Maximum hours between two backups: 30 days. */
const MAX_FREQUENCY_HOURS = 720;
/** Maximum days for which a backup is retained: one year. */
const MAX_RETENTION_DAYS = 365;

/** Clients name a pod by its own id or by `pod_executor_id`. */
const PodOrNode = Uuid.meta({
  description:
    'Id of the pod. The id of its node is also accepted if the account has no other live pod on this node.',
});
export const PodIdParams = z.object({ pod_id: PodOrNode });
export const PodUuidParams = z.object({ pod_uuid: PodOrNode });

export const PageQuery = z
  .object(
    described(
      {
        page: queryNumber(z.int().min(1).max(MAX_PAGE).default(1)),
        limit: queryNumber(z.int().min(1).max(MAX_LIMIT).default(DEFAULT_LIMIT)),
      },
      { page: PAGE, limit: 'Maximum number of entries per page, 1 to 100.' },
    ),
  )
  .meta({ example: { page: 1, limit: 20 } });
export type PageQuery = z.output<typeof PageQuery>;

/** A page of a list, newest first. */
function pageOf<Item extends z.ZodType>(item: Item) {
  return z.object(
    described(
      {
        items: z.array(item),
        total: z.int(),
        page: z.int(),
        limit: z.int(),
        has_next: z.boolean(),
      },
      {
        items: 'Entries of this page, newest first.',
        total: TOTAL,
        page: PAGE,
        limit: LIMIT,
        has_next: HAS_NEXT,
      },
    ),
  );
}

/** Any folder or file of the pod; the service rejects paths that are never backed up. */
const RequestedPath = z.string().min(1).max(MAX_PATH);

export const BackupConfigCreate = z
  .object(
    described(
      {
        pod_id: optional(Uuid),
        pod_executor_id: optional(Uuid),
        backup_frequency_hours: z.int().min(1).max(MAX_FREQUENCY_HOURS),
        retention_days: z.int().min(1).max(MAX_RETENTION_DAYS),
        backup_path: RequestedPath,
      },
      {
        pod_id: 'Id of the pod.',
        pod_executor_id:
          'Instead of `pod_id`: id of the node, if the caller has exactly one live pod on the node.',
        backup_frequency_hours: 'Hours between two backups, 1 to 720.',
        retention_days: 'Days after which a backup is removed, 1 to 365.',
        backup_path: 'Absolute path of a folder or file in the container to back up.',
      },
    ),
  )
  .refine(({ pod_id, pod_executor_id }) => (pod_id ?? pod_executor_id) !== undefined, {
    path: ['pod_id'],
    message: 'Field required',
  })
  .meta({
    id: 'BackupConfigCreate',
    example: {
      pod_id: EXAMPLE_IDS.pod,
      backup_frequency_hours: 24,
      retention_days: 30,
      backup_path: '/workspace',
    },
  });
export type BackupConfigCreate = z.output<typeof BackupConfigCreate>;

export const BackupConfig = z
  .object(
    described(
      {
        id: z.uuid(),
        pod_id: z.uuid(),
        pod_executor_id: z.uuid(),
        backup_frequency_hours: z.int(),
        retention_days: z.int(),
        backup_path: z.string(),
        is_active: z.boolean(),
        next_run_at: NaiveTime.nullable(),
        created_at: NaiveTime,
        updated_at: NaiveTime,
      },
      {
        id: 'Id of the schedule.',
        pod_id: 'Id of the pod.',
        pod_executor_id: "Id of the pod's node.",
        backup_frequency_hours: 'Hours between two backups.',
        retention_days: 'Days after which a backup is removed.',
        backup_path: 'Absolute path of a folder or file in the container.',
        is_active: 'True if backups are made.',
        next_run_at: 'Time of the next backup (UTC); null if the schedule is not active.',
        created_at: CREATED_AT,
        updated_at: UPDATED_AT,
      },
    ),
  )
  .meta({ id: 'BackupConfig' });
export type BackupConfigResponse = z.output<typeof BackupConfig>;

export const ManualBackupTriggerRequest = z
  .object(
    described(
      {
        name: optional(displayName(MAX_NAME)),
        description: optional(displayText(MAX_DESCRIPTION)),
      },
      {
        name: 'Name of the backup, 1 to 200 characters; absent for none.',
        description: 'Description, up to 1000 characters; absent for none.',
      },
    ),
  )
  .meta({ id: 'ManualBackupTriggerRequest', example: { name: 'before the upgrade' } });
export type ManualBackupTriggerRequest = z.output<typeof ManualBackupTriggerRequest>;

export const BackupTriggered = z
  .object(
    described(
      { success: z.literal(true), backup_log_id: z.uuid() },
      { success: SUCCESS, backup_log_id: 'Id of the backup, to follow its progress.' },
    ),
  )
  .meta({ id: 'BackupTriggeredResponse' });
export type BackupTriggered = z.output<typeof BackupTriggered>;

/** Fields that logs of backups and restores share. */
const operationShape = described(
  {
    id: z.uuid(),
    pod_id: z.uuid(),
    progress: z.number(),
    started_at: NaiveTime.nullable(),
    completed_at: NaiveTime.nullable(),
    error_message: z.string().nullable(),
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
  },
  {
    id: 'Id of the operation.',
    pod_id: 'Id of the pod.',
    progress: 'Progress in percent, 0 to 100.',
    started_at: 'Time at which the node began the operation (UTC); null before that time.',
    completed_at: 'Time at which the operation ended (UTC); null before that time.',
    error_message: 'Reason of the failure, as a sentence; null without a failure.',
    error_code: 'Code of the failure, which never changes; null without a failure.',
    created_at: 'Time of the request (UTC).',
    last_heartbeat_at: "Time of the node's last report (UTC); null before the first.",
    total_files: 'Number of files; null if unknown.',
    processed_files: 'Number of files that were processed; null if unknown.',
    total_bytes: 'Size of the files in bytes; null if unknown.',
    processed_bytes: 'Bytes that were processed; null if unknown.',
    elapsed_seconds: 'Duration in seconds, until the end or until now; null before the start.',
    throughput_bytes_per_second: 'Mean speed in bytes per second; null if unknown.',
    estimated_remaining_seconds: 'Expected seconds until the end; null if unknown.',
    status_message: 'Present activity or obstacle, as a sentence; null for none.',
  },
);

export const BackupLog = z
  .object({
    ...operationShape,
    ...described(
      {
        backup_config_id: z.uuid().nullable(),
        name: z.string().nullable(),
        description: z.string().nullable(),
        backup_path: z.string(),
        status: z.enum(BACKUP_STATES),
        stage: z.enum(['QUEUED', 'PREPARING', 'UPLOADING', 'VERIFYING']).nullable(),
        backup_volume_id: z.null(),
        deletion_state: z.enum(['PENDING', 'BLOCKED', 'DONE']).nullable(),
        physical_cleanup_at: NaiveTime.nullable(),
        sha256: z.string().nullable(),
        quality: z.string().nullable(),
        changed_files: z.array(z.string()).max(MAX_LISTED_PATHS).nullable(),
        changed_files_total: z.int().nullable(),
        expires_at: NaiveTime.nullable(),
        verify_status: z.enum(VERIFY_STATUSES).nullable(),
        verified_at: NaiveTime.nullable(),
        verify_error: z.string().nullable(),
        verify_error_code: z.string().nullable(),
        verified_files: z.int().nullable(),
        verified_bytes: z.int().nullable(),
      },
      {
        backup_config_id: 'Id of the schedule that caused the backup; null for a manual backup.',
        name: 'Name of the backup; null for none.',
        description: 'Description of the backup; null for none.',
        backup_path: 'Absolute path of the folder or file in the container that was backed up.',
        changed_files:
          'Paths of files that changed after the node had begun to read them: their content in the backup may be older or mixed. At most 100. Null before the end, and if the node cannot list such files.',
        changed_files_total:
          'Number of files that changed. It may exceed the number of paths in `changed_files`.',
        status: 'State of the backup.',
        stage: 'Step within the state; null at the end.',
        backup_volume_id: 'Always null: backups are in the storage, not in a volume.',
        deletion_state:
          'State of the removal of a deleted or expired backup’s data; `BLOCKED` if `status_message` names an obstacle, null if the data is kept.',
        physical_cleanup_at: 'Time at which the data was removed (UTC); null before that time.',
        sha256:
          'Hash of the snapshot, which contains the hashes of all its data; null before the end.',
        quality: '`partial` if some files could not be read; null before the end.',
        expires_at:
          'Time at which the retention of a completed backup ends (UTC); null in every other state.',
        verify_status:
          'Result of the last restore drill, which reads a sample of the backup; `FAILED` also if a backup itself finds damage in the storage. `INCONCLUSIVE` is not a verdict on the backup; null without a drill.',
        verified_at: 'Time of the last drill with a verdict (UTC); null for none.',
        verify_error: 'Reason for which the last drill failed; null without a failure.',
        verify_error_code:
          'Code of the drill’s failure, which never changes; null without a failure.',
        verified_files: 'Number of files that the last passed drill read; null for none.',
        verified_bytes: 'Bytes that the last passed drill read; null for none.',
      },
    ),
  })
  .meta({ id: 'BackupLog' });
export type BackupLogResponse = z.output<typeof BackupLog>;

export const BackupLogPage = pageOf(BackupLog).meta({ id: 'BackupLogPage' });
export type BackupLogPage = z.output<typeof BackupLogPage>;

export const RestoreRequest = z
  .object(
    described(
      {
        backup_id: Uuid,
        restore_path: RequestedPath,
        mode: optional(z.enum(RESTORE_MODES)),
        salvage: optional(z.boolean()),
      },
      {
        backup_id: 'Id of the backup, from a list of backups.',
        restore_path: 'Absolute path in the container at which the restored folder or file is put.',
        mode: '`replace` exchanges the folder for the backup and keeps the old folder until the restore has succeeded; `new_only` requires a new or empty folder. Absent: `replace`.',
        salvage:
          'True: restores everything that can be read of a backup that is damaged in the storage, and lists the rest in `lost_files`. False or absent: such a restore fails and changes nothing.',
      },
    ),
  )
  .meta({
    id: 'RestoreRequest',
    example: {
      backup_id: EXAMPLE_IDS.backup,
      restore_path: '/workspace/restored',
      mode: 'new_only',
    },
  });
export type RestoreRequest = z.output<typeof RestoreRequest>;

export const RestoreTriggered = z
  .object(
    described(
      { success: z.literal(true), restore_log_id: z.uuid() },
      { success: SUCCESS, restore_log_id: 'Id of the restore, to follow its progress.' },
    ),
  )
  .meta({ id: 'RestoreTriggeredResponse' });
export type RestoreTriggered = z.output<typeof RestoreTriggered>;

export const RestoreLog = z
  .object({
    ...operationShape,
    ...described(
      {
        backup_id: z.uuid(),
        status: z.enum(RESTORE_STATES),
        stage: z.enum(['PREPARING', 'RESTORING', 'FINALIZING']).nullable(),
        logs: z.string().nullable(),
        restore_path: z.string(),
        backup_engine: z.literal('restic'),
        restore_mode: z.enum(['STARTUP', 'LIVE']),
        mode: z.enum(RESTORE_MODES),
        salvage: z.boolean(),
        lost_files: z.array(z.string()).max(MAX_LISTED_PATHS).nullable(),
        lost_files_total: z.int().nullable(),
        restarted_pod: z.boolean().nullable(),
      },
      {
        backup_id: 'Id of the backup.',
        status: 'State of the restore.',
        stage: 'Step within the state; null before the start and at the end.',
        logs: 'Log lines of the node; null for none.',
        restore_path: 'Absolute path in the container at which the restored folder or file is put.',
        backup_engine: 'Program that reads the backup; always `restic`.',
        restore_mode:
          '`STARTUP` for a restore into a pod that does not run yet, `LIVE` for a restore into a running pod.',
        mode: '`replace` or `new_only`, as requested.',
        salvage: 'True if everything that can be read of a damaged backup is restored.',
        lost_files:
          'Paths below `restore_path` that could not be read of a damaged backup and are missing: files, and folders with everything below them. At most 100. Null before the end, and without `salvage`.',
        lost_files_total:
          'Number of paths that could not be read. It may exceed the number of paths in `lost_files`.',
        restarted_pod:
          'True if the node stops and starts the pod to exchange the folder; false if the pod keeps running. Null until the files were fetched.',
      },
    ),
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
