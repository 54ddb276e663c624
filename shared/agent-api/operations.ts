/** Backups and restores on the agent's wire: long work that is a row, asked about by its id (agent reference 14). */
import { z } from 'zod';

export const OperationId = z.uuid();

/** Variables that back ends of restic take; they reach restic's process alone. */
const BackendVariable = z
  .string()
  .regex(
    /^(?:RESTIC_REST_(?:USERNAME|PASSWORD)|AWS_[A-Z_]{1,60})$/,
    'Not a variable of a back end',
  );

/** Where a pod's backups lie. Kept sealed while an operation needs it, and never answered. */
export const RepositoryAccess = z.strictObject({
  /** As restic takes it: a path, `rest:https://…`, `s3:…`, `sftp:…`; no credentials in it. */
  location: z
    .string()
    .min(1)
    .max(2_048)
    .regex(/^[^\p{Cc}]*$/u, 'Contains control characters'),
  /** Of the repository itself: whoever has it can read every backup in it. */
  password: z.string().min(16).max(256),
  environment: z.record(BackendVariable, z.string().max(4_096)).default({}),
});
export type RepositoryAccess = z.output<typeof RepositoryAccess>;

/** Inside the pod: absolute, plain steps, no trailing slash. The agent checks that it lies in the pod's data volume. */
export const PodPath = z
  .string()
  .max(4_096)
  .regex(/^(?:\/(?!\.{1,2}(?:\/|$))[^/\0]+)+$/, 'Not an absolute path of plain steps');

const SnapshotId = z.string().regex(/^[0-9a-f]{64}$/, 'Not a snapshot id');

/** A repeat with the same content changes nothing. */
export const BackupRequest = z.strictObject({
  operation_id: OperationId,
  path: PodPath,
  repository: RepositoryAccess,
  /** The first backup of a pod makes its repository; later ones and restores must find it. */
  create_repository: z.boolean().default(false),
});
export type BackupRequest = z.output<typeof BackupRequest>;
export type BackupRequestInput = z.input<typeof BackupRequest>;

export const RESTORE_MODES = ['replace', 'new_only'] as const;

export const RestoreRequest = z.strictObject({
  operation_id: OperationId,
  snapshot_id: SnapshotId,
  /** Where the tree was when it was backed up. */
  source_path: PodPath,
  /** Where it goes. */
  target_path: PodPath,
  /** `replace` swaps the tree in for what is there; `new_only` wants nothing or an empty folder there. */
  mode: z.enum(RESTORE_MODES).default('replace'),
  repository: RepositoryAccess,
});
export type RestoreRequest = z.output<typeof RestoreRequest>;
export type RestoreRequestInput = z.input<typeof RestoreRequest>;

export const BACKUP_STAGES = [
  'queued',
  'preparing',
  'uploading',
  'verifying',
  'done',
  'failed',
  'cancelled',
] as const;
export const RESTORE_STAGES = [
  'queued',
  'fetching',
  'verifying',
  'stopping',
  'swapping',
  'starting',
  'committed',
  'done',
  'failed',
  'cancelled',
] as const;
export const FINAL_STAGES = ['done', 'failed', 'cancelled'] as const;

/** Why an operation failed. Closed and stable: clients key on it. */
export const OPERATION_ERRORS = [
  'RepositoryMissing',
  'RepositoryAuth',
  'RepositoryCorrupt',
  'RepositoryUnreachable',
  'RepositoryNoSpace',
  'SnapshotMissing',
  'PathMissing',
  'PathRefused',
  'TargetNotEmpty',
  'NoSpace',
  'VerificationFailed',
  'PodGone',
  /** The pod did not become ready on the restored tree, and has its old one again. */
  'RolledBack',
  'EngineFailed',
  'DeadlineExceeded',
] as const;
export type OperationError = (typeof OPERATION_ERRORS)[number];

/** `full`: everything was read; `partial`: a snapshot exists, some files could not be read (restic's exit 3). */
export const QUALITIES = ['full', 'partial'] as const;

const Progress = {
  total_files: z.int().nullable(),
  processed_files: z.int().nullable(),
  total_bytes: z.int().nullable(),
  processed_bytes: z.int().nullable(),
  /** 0-100, never falling. */
  percent: z.number(),
  bytes_per_second: z.number().nullable(),
  remaining_seconds: z.number().nullable(),
};

export const OperationView = z.object({
  id: OperationId,
  pod_id: z.uuid(),
  kind: z.enum(['backup', 'restore']),
  stage: z.enum([...BACKUP_STAGES, ...RESTORE_STAGES]),
  ...Progress,
  /** Of a backup that is done. */
  snapshot_id: SnapshotId.nullable(),
  quality: z.enum(QUALITIES).nullable(),
  error: z.object({ code: z.enum(OPERATION_ERRORS), message: z.string() }).nullable(),
  /** The last lines of what was done, without secrets. */
  log: z.array(z.string()),
  started_ms: z.int(),
  /** When the agent last worked on it, host clock. */
  heartbeat_ms: z.int(),
  finished_ms: z.int().nullable(),
});
export type OperationView = z.output<typeof OperationView>;

/** The newest of a pod or of the host, unfinished ones first. */
export const OperationList = z.object({ operations: z.array(OperationView) });
