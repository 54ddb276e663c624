/** Backups, restores and drills on the agent's wire: long work that is a row, asked about by its id (agent reference 14). */
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

/** What is at a path of a pod's data; `occupied` is what a `new_only` restore does not go to. */
export const TargetView = z.object({ state: z.enum(['absent', 'empty', 'occupied']) });
export type TargetState = z.output<typeof TargetView>['state'];

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

/** Most files that one drill reads back, each an argument of restic's. */
const MAX_SAMPLE_FILES = 200;
const MAX_SAMPLE_BYTES = 16 * 1024 ** 3;

/**
 * A drill: a sample of a snapshot is restored beside everything and compared. The repository is enough for it: the pod
 * that was backed up need not be on this host.
 */
export const DrillRequest = z.strictObject({
  operation_id: OperationId,
  snapshot_id: SnapshotId,
  sample: z.strictObject({
    /** The same seed chooses the same files. */
    seed: z.string().min(1).max(64),
    max_files: z.int().min(1).max(MAX_SAMPLE_FILES),
    /** Of all that is read; larger files are left out, though some of their data may be read. */
    max_bytes: z.int().min(1).max(MAX_SAMPLE_BYTES),
  }),
  repository: RepositoryAccess,
});
export type DrillRequest = z.output<typeof DrillRequest>;
export type DrillRequestInput = z.input<typeof DrillRequest>;

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
export const DRILL_STAGES = [
  'queued',
  'preparing',
  'fetching',
  'verifying',
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
  /** Or the id of the volume's copy that it is about. */
  pod_id: z.uuid(),
  kind: z.enum(['backup', 'restore', 'verify']),
  stage: z.enum([...BACKUP_STAGES, ...RESTORE_STAGES, ...DRILL_STAGES]),
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

/** How restic is told where a repository is, by its environment alone: nothing of it in an argument, for all to read. */

const USERNAME = 'RESTIC_REST_USERNAME';
const PASSWORD = 'RESTIC_REST_PASSWORD';

/** As `RepositoryAccess` and `RepositoryPlace` have them: a location without credentials, and the variables of its back end. */
export type RepositoryAddress = { location: string; environment: Record<string, string> };

/**
 * RESTIC_REPOSITORY and the back end's variables. Not every version of restic reads those of the REST protocol: 0.14
 * takes such credentials in the address alone, so they go there for all. Its output never shows them.
 */
export function repositoryVariables({ location, environment }: RepositoryAddress) {
  const { [USERNAME]: username, [PASSWORD]: password, ...others } = environment;
  const match = /^(rest:https?:\/\/)([^/@]+(?:\/.*)?)$/.exec(location);
  if (match === null || username === undefined || password === undefined) {
    return { ...environment, RESTIC_REPOSITORY: location };
  }
  const [, scheme = '', rest = ''] = match;
  const user = `${encodeURIComponent(username)}:${encodeURIComponent(password)}`;
  return { ...others, RESTIC_REPOSITORY: `${scheme}${user}@${rest}` };
}
