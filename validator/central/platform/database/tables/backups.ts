/** Tables of backups, restores, drills and volumes. */
import type { Flag, Stamped } from './platform.ts';

/** Where the backups of one pod lie; they may outlive it. */
export type BackupRepositoriesTable = {
  id: string;
  pod_id: string;
  account_id: string;
  /** Of the repository itself, sealed for the place `id`. */
  password_sealed: string;
  /** When its first backup had been made; null: there is nothing there that has to be found. */
  made_at: number | null;
  /** The process that takes snapshots out of it just now: meanwhile nothing may use it. */
  cleaning_boot_id: string | null;
  created_at: number;
  /** When everything in it was removed, for good. */
  removed_at: number | null;
};

/** One row per pod that ever had one: what is backed up, how often, and for how long it is kept. */
export type BackupConfigsTable = Stamped & {
  id: string;
  pod_id: string;
  account_id: string;
  backup_frequency_hours: number;
  retention_days: number;
  backup_path: string;
  /** The next run; null: it is not active. */
  next_at: number | null;
  /** When its newest backup is next read back; null: not planned yet. */
  drill_at: number | null;
};

/** What backups, restores and drills have in common: each is an operation on a node, there under the same id. */
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
  /** As the node names it; null before it has taken it. */
  stage: string | null;
  /** 0-100, never falling. */
  percent: number;
  total_files: number | null;
  processed_files: number | null;
  total_bytes: number | null;
  processed_bytes: number | null;
  bytes_per_second: number | null;
  remaining_seconds: number | null;
  /** Before the first request to the node goes out: null means that it cannot know of it. */
  sent_at: number | null;
  /** When its end was asked for. */
  cancel_at: number | null;
  /** The last sign of life, by our clock. */
  heartbeat_at: number;
  /** The same by the node's clock. */
  node_heartbeat_ms: number | null;
  /** Settled here without its node, which is to end it as soon as it answers. */
  abandoned_at: number | null;
  error_code: string | null;
  error_message: string | null;
  /** The request that wanted it; null for scheduled ones. */
  request_id: string | null;
  created_at: number;
  started_at: number | null;
  /** Null exactly while it is PENDING or IN_PROGRESS. */
  completed_at: number | null;
};

export type BackupLogsTable = OperationColumns & {
  /** The schedule that wanted it; null for manual ones. */
  config_id: string | null;
  name: string | null;
  description: string | null;
  path: string;
  retention_days: number;
  snapshot_id: string | null;
  quality: string | null;
  /** Null once nothing of it is kept any more. */
  expires_at: number | null;
  /** Since when its snapshot is to be taken out of the repository; null when there is nothing to take out. */
  cleanup_at: number | null;
  /** Why that has not happened. */
  cleanup_problem: string | null;
  cleaned_at: number | null;
  /** Of the last drill; null before the first. */
  verify_status:
    | 'PENDING'
    | 'IN_PROGRESS'
    | 'PASSED'
    | 'FAILED'
    | 'INCONCLUSIVE'
    | 'CANCELLED'
    | null;
  /** When a drill last came to a verdict. */
  verified_at: number | null;
  verify_error: string | null;
  verify_error_code: string | null;
  /** What was read back. */
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
  /** With the rental, or while the pod was running. */
  occasion: 'STARTUP' | 'LIVE';
  /** What the node did, line by line. */
  log: string;
};

/** One of an account's volumes: what is known of its data, and what of it is saved. */
export type VolumesTable = Stamped & {
  id: string;
  account_id: string;
  name: string;
  description: string;
  /** What its data may come to. */
  limit_bytes: number;
  /** The pod that has it, until nothing of that pod is left on its node. */
  attached_pod_id: string | null;
  /** As last measured on a node, or saved. */
  bytes: number;
  files: number;
  measured_at: number | null;
  /** Of its repository, which has its id; sealed for the place `id`. */
  password_sealed: string;
  /** When it was first saved; null: there is nothing in the repository that has to be found. */
  made_at: number | null;
  /** What the next pod gets; null: an empty volume. */
  snapshot_id: string | null;
  saved_at: number | null;
  /** 1: older snapshots are to be taken out of the repository. */
  has_waste: Flag;
  /** The process that cleans the repository just now: meanwhile nothing may use it. */
  cleaning_boot_id: string | null;
  /** The row goes with the repository. */
  deleted_at: number | null;
};

/** A volume's data on a node, there under this id; what lies on other nodes under other ids never meets it. */
export type VolumeCopiesTable = Stamped & {
  id: string;
  volume_id: string;
  account_id: string;
  /** The pod that has it, or had it last. */
  pod_id: string;
  executor_id: string;
  state: 'restoring' | 'attached' | 'saving' | 'dropping';
  /** What it is filled with before the pod starts; null: it begins empty. */
  source_snapshot_id: string | null;
  /** The restore or backup under way on the node; stored before it is sent. */
  operation_id: string | null;
  /** As the node names it. */
  stage: string | null;
  percent: number;
  /** Failed ones of the present state. */
  attempts: number;
  retry_at: number | null;
  /** Why the last attempt failed. */
  error_code: string | null;
  error_message: string | null;
  /** When its node last told of it, or was asked to make it. */
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
