/** Backups, restores and restore drills in the agent's interface: long-running operations that are polled by id. */
import { z } from 'zod';

export const OperationId = z.uuid();

/** Variables of restic's back ends; only restic's process receives them. */
const BackendVariable = z
  .string()
  .regex(
    /^(?:RESTIC_REST_(?:USERNAME|PASSWORD)|AWS_[A-Z_]{1,60})$/,
    'Not a variable of a back end',
  );

/**
 * Location and credentials of a repository. The agent stores them encrypted while an operation needs them, and never
 * returns them.
 */
export const RepositoryAccess = z.strictObject({
  /** restic's format, without credentials: a path, `rest:https://…`, `s3:…`, `sftp:…`. */
  location: z
    .string()
    .min(1)
    .max(2_048)
    .regex(/^[^\p{Cc}]*$/u, 'Contains control characters'),
  /** The repository's password, which decrypts every backup in it. */
  password: z.string().min(16).max(256),
  environment: z.record(BackendVariable, z.string().max(4_096)).default({}),
});
export type RepositoryAccess = z.output<typeof RepositoryAccess>;

/** An absolute path in the pod without `.`, `..` or a trailing slash. */
export const PodPath = z
  .string()
  .max(4_096)
  .regex(/^(?:\/(?!\.{1,2}(?:\/|$))[^/\0]+)+$/, 'Not an absolute path without . and .. segments');

/**
 * Folders that are never backed up or restored: temporary folders, folders of the kernel, and the mount point of an
 * account's volume.
 */
const NEVER_SAVED = ['/tmp', '/var/tmp', '/mnt', '/proc', '/sys', '/dev'];

/** Returns the folder that is never backed up and contains the path; null if there is none. */
export function neverSavedIn(path: string): string | null {
  return NEVER_SAVED.find((folder) => path === folder || path.startsWith(`${folder}/`)) ?? null;
}

const SnapshotId = z.string().regex(/^[0-9a-f]{64}$/, 'Not a snapshot id');

/**
 * Renter of an operation: a host runs one backup or restore of each renter at a time. The id is opaque and
 * differs between hosts. `is_present`: the renter has a pod on the host.
 */
const OfRenter = z.strictObject({ id: z.string().min(1).max(64), is_present: z.boolean() });

/** Idempotent: a repeated request with the same content has no effect. */
export const BackupRequest = z.strictObject({
  operation_id: OperationId,
  path: PodPath,
  repository: RepositoryAccess,
  /** Creates the repository if it does not exist: set for a pod's first backup only. */
  create_repository: z.boolean().default(false),
  renter: OfRenter.optional(),
});
export type BackupRequest = z.output<typeof BackupRequest>;
export type BackupRequestInput = z.input<typeof BackupRequest>;

export const RESTORE_MODES = ['replace', 'new_only'] as const;

/** State of a path in a pod's data: a `new_only` restore rejects an `occupied` one. */
export const TargetView = z.object({ state: z.enum(['absent', 'empty', 'occupied']) });
export type TargetState = z.output<typeof TargetView>['state'];

export const RestoreRequest = z.strictObject({
  operation_id: OperationId,
  snapshot_id: SnapshotId,
  /** Path of the tree at the time of the backup. */
  source_path: PodPath,
  /** Path to restore to. */
  target_path: PodPath,
  /** `replace` replaces the target; `new_only` requires that the target is absent or empty. */
  mode: z.enum(RESTORE_MODES).default('replace'),
  /** Restores everything that can be read of a damaged snapshot, and lists the rest. Absent: refuses such a snapshot. */
  salvage: z.boolean().optional(),
  repository: RepositoryAccess,
  renter: OfRenter.optional(),
});
export type RestoreRequest = z.output<typeof RestoreRequest>;
export type RestoreRequestInput = z.input<typeof RestoreRequest>;

/** Most files of a drill; each is passed to restic as an argument. */
const MAX_SAMPLE_FILES = 200;
const MAX_SAMPLE_BYTES = 16 * 1024 ** 3;

/**
 * Requests a restore drill: it restores a sample of a snapshot to a temporary folder and compares it. The pod need not
 * be on this host.
 */
export const DrillRequest = z.strictObject({
  operation_id: OperationId,
  snapshot_id: SnapshotId,
  sample: z.strictObject({
    /** Drills with the same seed select the same files. */
    seed: z.string().min(1).max(64),
    max_files: z.int().min(1).max(MAX_SAMPLE_FILES),
    /** Limit for the sample, bytes. Files that exceed it are skipped, though some of their data may be read. */
    max_bytes: z.int().min(1).max(MAX_SAMPLE_BYTES),
  }),
  repository: RepositoryAccess,
  renter: OfRenter.optional(),
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

/** Why an operation failed. Clients depend on these codes. */
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
  /** The pod did not become ready with the restored tree; its previous tree was put back. */
  'RolledBack',
  /** An edit of the pod replaced the container, and with it the folder, during the operation. */
  'ContainerReplaced',
  'EngineFailed',
  'DeadlineExceeded',
] as const;
export type OperationError = (typeof OPERATION_ERRORS)[number];

/**
 * `full`: all files were read. `partial`: a snapshot exists but some files could not be read (restic's exit status 3).
 */
export const QUALITIES = ['full', 'partial'] as const;

/** Limits for the paths that an operation reports. */
export const MAX_LISTED_PATHS = 100;
export const MAX_LISTED_CHARS = 16_384;

/** Number of files, and their first paths. */
export const FileList = z.object({
  /** Number of files. */
  count: z.int().nonnegative(),
  /** Paths in the pod; not all of them if there are many. */
  paths: z
    .array(z.string())
    .max(MAX_LISTED_PATHS)
    .refine((paths) => paths.join('').length <= MAX_LISTED_CHARS, 'Too long in total'),
});
export type FileList = z.output<typeof FileList>;

const Progress = {
  total_files: z.int().nullable(),
  processed_files: z.int().nullable(),
  total_bytes: z.int().nullable(),
  processed_bytes: z.int().nullable(),
  /** 0-100; never decreases. */
  percent: z.number(),
  bytes_per_second: z.number().nullable(),
  remaining_seconds: z.number().nullable(),
};

export const OperationView = z.object({
  id: OperationId,
  /** Id of the pod, or of the copy of a volume. */
  pod_id: z.uuid(),
  kind: z.enum(['backup', 'restore', 'verify']),
  stage: z.enum([...BACKUP_STAGES, ...RESTORE_STAGES, ...DRILL_STAGES]),
  ...Progress,
  /** Set when a backup is done. */
  snapshot_id: SnapshotId.nullable(),
  quality: z.enum(QUALITIES).nullable(),
  /**
   * Files that changed while a backup read them: the snapshot may have earlier or mixed content of them. Set when a backup
   * is done; null if they are unknown. Older agents do not send this field and the four below.
   */
  changed_files: FileList.nullable().default(null),
  /** Damage of the repository that was found during a backup, as a sentence; null if none was found. */
  damage: z.string().nullable().default(null),
  /** Files and folders of a damaged snapshot that a restore with `salvage` could not read; null without `salvage`. */
  lost_files: FileList.nullable().default(null),
  /** True if the restore stops and starts the pod; null before this is decided. */
  restarts_pod: z.boolean().nullable().default(null),
  /** Why the operation makes no progress at present, as a sentence for the renter. */
  obstacle: z.string().nullable().default(null),
  error: z.object({ code: z.enum(OPERATION_ERRORS), message: z.string() }).nullable(),
  /** The last log lines, without secrets. */
  log: z.array(z.string()),
  started_ms: z.int(),
  /** Time of the operation's last heartbeat, by the host's clock. */
  heartbeat_ms: z.int(),
  finished_ms: z.int().nullable(),
});
export type OperationView = z.output<typeof OperationView>;

/** The operations of a pod or host: unfinished ones first, then the newest. */
export const OperationList = z.object({ operations: z.array(OperationView) });

const USERNAME = 'RESTIC_REST_USERNAME';
const PASSWORD = 'RESTIC_REST_PASSWORD';

/** A location without credentials, and the variables of its back end. */
export type RepositoryAddress = { location: string; environment: Record<string, string> };

/**
 * Returns RESTIC_REPOSITORY and the back end's variables for restic's environment; nothing is passed as an argument,
 * which other users could read. REST credentials are part of the URL, because restic 0.14 does not read their
 * variables. restic never prints them.
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
