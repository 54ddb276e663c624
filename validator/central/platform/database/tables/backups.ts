/** Tables of backups, restores, drills and volumes. */
import type { Generated } from 'kysely';
import type { Flag, Stamped } from './platform.ts';

/**
 * Repository with the backups of one pod. After the pod ends, the repository is retained as long as it contains
 * backups.
 */
export type BackupRepositoriesTable = {
  id: string;
  pod_id: string;
  account_id: string;
  /** Password of the repository, sealed for `id`. */
  password_sealed: string;
  /** Time of the first backup; null if the repository does not exist yet. */
  made_at: number | null;
  /** Process that is removing snapshots; the repository is locked while this column is set. */
  cleaning_boot_id: string | null;
  created_at: number;
  /** Time at which the repository was removed. */
  removed_at: number | null;
};

/** Backup schedule of a pod: path, frequency and retention. */
export type BackupConfigsTable = Stamped & {
  id: string;
  pod_id: string;
  account_id: string;
  backup_frequency_hours: number;
  retention_days: number;
  backup_path: string;
  /** Time of the next run; null if the schedule is inactive. */
  next_at: number | null;
  /** Time of the next restore drill of the newest backup; null if none is scheduled yet. */
  drill_at: number | null;
};

/**
 * Columns of backups, restores and drills. Each of them is an operation on a node, and the operation has the same id.
 */
export type OperationColumns = {
  id: string;
  account_id: string;
  pod_id: string;
  executor_id: string;
  repository_id: string;
  state:
    | 'PENDING'
    | 'IN_PROGRESS'
    | 'COMPLETED'
    | 'FAILED'
    | 'CANCELLED'
    | 'SKIPPED'
    | 'EXPIRED'
    | 'DELETED';
  /** Stage reported by the node; null before the node has accepted the operation. */
  stage: string | null;
  /** 0 to 100; never decreases. */
  percent: number;
  total_files: number | null;
  processed_files: number | null;
  total_bytes: number | null;
  processed_bytes: number | null;
  bytes_per_second: number | null;
  remaining_seconds: number | null;
  /** Set before the first request to the node. Null means that the node cannot have received the operation. */
  sent_at: number | null;
  /** Time at which cancellation was requested. */
  cancel_at: number | null;
  /** Time of the last heartbeat, by the clock of the central API. */
  heartbeat_at: number;
  /** Time of the last heartbeat, by the clock of the node. */
  node_heartbeat_ms: number | null;
  /**
   * Time at which the central API ended the operation without the node's confirmation. The central API cancels the
   * operation on the node as soon as the node responds.
   */
  abandoned_at: number | null;
  error_code: string | null;
  error_message: string | null;
  /** Request that started the operation; null for a scheduled operation. */
  request_id: string | null;
  created_at: number;
  started_at: number | null;
  /** Null if and only if the status is PENDING or IN_PROGRESS. */
  completed_at: number | null;
};

export type BackupLogsTable = OperationColumns & {
  /** Schedule that started the backup; null if a request started the backup. */
  config_id: string | null;
  name: string | null;
  description: string | null;
  path: string;
  retention_days: number;
  snapshot_id: string | null;
  quality: string | null;
  /** Files that changed while they were read, as JSON of `FileList`; null if unknown. */
  changed_files_json: string | null;
  /** Time of expiry; null after the data was removed. */
  expires_at: number | null;
  /** Time since which the snapshot must be removed; null if there is no snapshot to remove. */
  cleanup_at: number | null;
  /** Running time of the central API from which on the snapshot may be removed. */
  cleanup_after_ms: Generated<number>;
  /** Reason why the removal failed. */
  cleanup_problem: string | null;
  cleaned_at: number | null;
  /** Result of the last drill; null before the first drill. */
  verify_status:
    | 'PENDING'
    | 'IN_PROGRESS'
    | 'PASSED'
    | 'FAILED'
    | 'INCONCLUSIVE'
    | 'CANCELLED'
    | null;
  /** Time of the last drill that had a result. */
  verified_at: number | null;
  verify_error: string | null;
  verify_error_code: string | null;
  /** Number of files and bytes that were read back. */
  verified_files: number | null;
  verified_bytes: number | null;
};

export type BackupDrillsTable = OperationColumns & {
  backup_id: string;
  snapshot_id: string;
  occasion: 'SCHEDULED' | 'REQUESTED';
};

export type RestoreLogsTable = OperationColumns & {
  backup_id: string;
  snapshot_id: string;
  source_path: string;
  target_path: string;
  mode: 'replace' | 'new_only';
  /** `STARTUP`: the rental requested the restore. `LIVE`: the pod was running. */
  occasion: 'STARTUP' | 'LIVE';
  /** 1 if the readable part of a damaged backup is restored. */
  salvage: Flag;
  /**
   * Files that a restore with `salvage` could not read, as JSON of `FileList`; null before the end, and without
   * `salvage`.
   */
  lost_files_json: string | null;
  /** 1 if the node stopped and started the pod for the restore; null before the node has decided this. */
  restarted_pod: Flag | null;
  /** Log lines of the node. */
  log: string;
};

/** Volumes of accounts, with the size and the saved snapshot of their data. */
export type VolumesTable = Stamped & {
  id: string;
  account_id: string;
  name: string;
  description: string;
  /** Maximum size of the volume's data. */
  limit_bytes: number;
  /** Pod that uses the volume, until the node has removed everything of the pod. */
  attached_pod_id: string | null;
  /** Size of the data when it was last measured on a node, or saved. */
  bytes: number;
  files: number;
  measured_at: number | null;
  /** Password of the volume's repository, sealed for `id`. The repository has the same id. */
  password_sealed: string;
  /** Time of the first save; null if the repository does not exist yet. */
  made_at: number | null;
  /** Snapshot that the next pod receives; null for an empty volume. */
  snapshot_id: string | null;
  saved_at: number | null;
  /** 1 if older snapshots must be removed from the repository. */
  has_waste: Flag;
  /** Process that is removing snapshots; the repository is locked while this column is set. */
  cleaning_boot_id: string | null;
  /** Time at which deletion was requested. The row is deleted together with the repository. */
  deleted_at: number | null;
};

/** Copy of a volume's data on a node, with a separate id. Copies on different nodes are independent. */
export type VolumeCopiesTable = Stamped & {
  id: string;
  volume_id: string;
  account_id: string;
  /** Pod that uses the copy, or that used it last. */
  pod_id: string;
  executor_id: string;
  state: 'restoring' | 'attached' | 'saving' | 'dropping';
  /** Snapshot that is restored before the pod starts; null if the copy starts empty. */
  source_snapshot_id: string | null;
  /** Restore or backup that is in progress on the node. Stored before it is sent to the node. */
  operation_id: string | null;
  /** Stage that the node reported. */
  stage: string | null;
  percent: number;
  /** Failed attempts in the present state. */
  attempts: number;
  retry_at: number | null;
  /** Reason why the last attempt failed. */
  error_code: string | null;
  error_message: string | null;
  /** Time at which the node last reported the copy, or was requested to create it. */
  seen_at: number;
};

export type BackupTables = {
  backup_repositories: BackupRepositoriesTable;
  backup_configs: BackupConfigsTable;
  backup_logs: BackupLogsTable;
  backup_drills: BackupDrillsTable;
  restore_logs: RestoreLogsTable;
  volumes: VolumesTable;
  volume_copies: VolumeCopiesTable;
};
