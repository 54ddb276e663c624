/**
 * Parses restic's output: JSON lines and plain-text errors; redacts lines for display. All output is untrusted; unknown
 * lines are skipped. Pure.
 */
import { z } from 'zod';
import type { OperationError } from '#shared/api/agent/operations.ts';

const Count = z.int().nonnegative();

export const BackupStatus = z.object({
  message_type: z.literal('status'),
  percent_done: z.number().min(0).max(1),
  total_files: Count.default(0),
  files_done: Count.default(0),
  /** Size of all files found so far. The size of sparse files may exceed the safe integers. */
  total_bytes: z.number().nonnegative().default(0),
  bytes_done: Count.default(0),
});
export type BackupStatus = z.output<typeof BackupStatus>;

export const BackupSummary = z.object({
  message_type: z.literal('summary'),
  files_new: Count.default(0),
  files_changed: Count.default(0),
  data_added: Count.default(0),
  total_files_processed: Count,
  total_bytes_processed: Count,
  /** restic 0.14 prints the short form. */
  snapshot_id: z.string().regex(/^[0-9a-f]{8,64}$/),
});
export type BackupSummary = z.output<typeof BackupSummary>;

export const BackupLine = z.discriminatedUnion('message_type', [BackupStatus, BackupSummary]);

/** A line on stderr of `backup --json`: a file that could not be read. */
export const BackupErrorLine = z.object({
  message_type: z.literal('error'),
  error: z.looseObject({ message: z.string().optional(), Err: z.unknown() }).optional(),
  item: z.string().default(''),
});

/** `total_file_count` includes directories and links; hard links count once in `total_size`. */
export const SnapshotStats = z.object({ total_size: Count, total_file_count: Count });
export type SnapshotStats = z.output<typeof SnapshotStats>;

/** A line of `ls --json`: the snapshot, then each entry. Only regular files have a size. */
export const ListLine = z.discriminatedUnion('struct_type', [
  z.object({ struct_type: z.literal('snapshot'), id: z.string().regex(/^[0-9a-f]{64}$/) }),
  z.object({
    struct_type: z.literal('node'),
    type: z.string(),
    path: z.string(),
    size: Count.default(0),
    /** Go's os.FileMode. */
    mode: Count,
    mtime: z.string(),
    ctime: z.string().default(''),
  }),
]);
export type ListedNode = Extract<z.output<typeof ListLine>, { struct_type: 'node' }>;

/** Returns undefined for text that is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** `locked`: another process has exclusive access, for example for a prune; a retry may succeed. */
export type ResticProblem = OperationError | 'locked';

/**
 * Current work of restic, which determines whose disk is full. During a restore, this host's disk is full. While restic
 * writes to the repository, the repository's disk is full, unless the error names the temporary folder in which restic
 * assembles packs.
 */
export type ResticWork = 'repository' | 'restore';

/** A problem, and its meaning as a sentence for renters, who do not know restic. */
export type Explained = { problem: ResticProblem; meaning: string };

const OTHER: Explained = {
  problem: 'EngineFailed',
  meaning: 'The node could not complete the work with the storage of backups',
};
const FULL_HERE: Explained = {
  problem: 'NoSpace',
  meaning: 'The disk of the node is full. Delete files of the pod, or ask the provider for space',
};

/**
 * The first match wins: restic prints `Is there a repository` after every failure to open a repository, so that pattern
 * is last.
 */
const PROBLEMS: readonly (readonly [RegExp, ResticProblem, meaning: string])[] = [
  [/already locked/i, 'locked', 'Another process uses the storage of backups'],
  [
    /wrong password or no key found/i,
    'RepositoryAuth',
    'The password does not open these backups: the storage may contain those of somebody else',
  ],
  [
    /read-only file ?system|storage is read-only/i,
    'RepositoryAuth',
    'The storage of backups is read-only, so it accepts no backup. Restores are possible',
  ],
  [
    /\b(?:401|403)\b|access ?denied|forbidden|unauthorized|permission denied|InvalidAccessKeyId|SignatureDoesNotMatch/i,
    'RepositoryAuth',
    'The storage of backups refuses access to the node',
  ],
  [
    /no space left|storage is full|quota|bytes for backups are used up|\b(?:413|507)\b|insufficient storage|request entity too large|EntityTooLarge/i,
    'RepositoryNoSpace',
    'The storage of backups is full. Delete old backups, or ask the operator for space',
  ],
  [
    /connection refused|no such host|i\/o timeout|network is unreachable|no route to host|connection reset|broken pipe|https?:[^\n]*\bEOF\b|tls:|x509:|context deadline exceeded|\b(?:500|502|503|504)\b|subprocess ssh exited/i,
    'RepositoryUnreachable',
    'The storage of backups does not answer. Try again later',
  ],
  [
    /ciphertext verification failed|does not match|invalid data returned|repository contains errors|seal is broken|wrong hash|unable to load (?:index|tree)|load(?:ing)? ?(?:index|tree|blob).*(?:failed|error|not found)|not found in (?:the )?(?:index|repository)|unexpected EOF|\binvalid character\b|header length|truncated|is damaged|invalid child node name|does not exist.*\/(?:data|index)\/|<(?:data|index)\/[0-9a-f]+> does not exist|\(416\)|data\/[0-9a-f]{2}\/.*no such file/i,
    'RepositoryCorrupt',
    'Backups are damaged in the storage',
  ],
  [
    /no matching ID found|no snapshot found|snapshot .*not found/i,
    'SnapshotMissing',
    'The storage no longer contains this backup',
  ],
  [
    /unable to open config file|is there a repository at/i,
    'RepositoryMissing',
    'The backups are not in the storage: it was emptied, moved or is not attached. Ask the operator',
  ],
];

/** Explains these lines of stderr; `EngineFailed` for unknown text. */
export function explain(stderr: string, work: ResticWork = 'repository'): Explained {
  const found = PROBLEMS.find(([pattern]) => pattern.test(stderr));
  if (found === undefined) return OTHER;
  const [, problem, meaning] = found;
  const isFull = problem === 'RepositoryNoSpace' && /no space left|disk quota/i.test(stderr);
  const isLocal = work === 'restore' || /\/restic-[\w-]+: no space left/i.test(stderr);
  return isFull && isLocal ? FULL_HERE : { problem, meaning };
}

/**
 * Returns true for a line with which restic reports that it repeats a request to the storage. restic repeats a request
 * for up to a quarter of an hour.
 */
export function isRetry(line: string): boolean {
  return /returned error, retrying after/.test(line);
}

/** Returns true for a line of a Go stack trace, which restic prints after unexpected errors. */
export function isStackLine(line: string): boolean {
  return /^\s|^goroutine \d+|^(?:[\w-]+\.[\w.-]+\/|main\.|runtime\.|os\.|syscall\.)\S+$/.test(line);
}

const MAX_LINE_CHARS = 300;
const REASON_CHARS = 100;
const CREDENTIALS_IN_URL = /(\/\/)[^/\s@]+@/g;

/**
 * Prepares a line for display: removes `secrets`, credentials in addresses and control characters, replaces host paths
 * by pod paths (`paths`: from host to pod), and truncates.
 */
export function redactLine(
  line: string,
  { secrets, paths }: { secrets: readonly string[]; paths: readonly (readonly [string, string])[] },
): string {
  let text = line.replaceAll(/\p{Cc}/gu, ' ').replaceAll(CREDENTIALS_IN_URL, '$1***@');
  for (const secret of secrets) if (secret !== '') text = text.replaceAll(secret, '***');
  for (const [host, pod] of paths) text = text.replaceAll(host, pod);
  if (text.length <= MAX_LINE_CHARS) return text;
  // Retains the end of the line, which has the reason, after a path that may be long.
  return `${text.slice(0, MAX_LINE_CHARS - REASON_CHARS)}…${text.slice(-REASON_CHARS)}`;
}
