/** restic's JSON, as far as it is read; every line comes from outside and anything else is passed over. */
import { z } from 'zod';
import type { OperationError } from '#shared/api/agent/operations.ts';

const Count = z.int().nonnegative();

export const BackupStatus = z.object({
  message_type: z.literal('status'),
  percent_done: z.number().min(0).max(1),
  total_files: Count.default(0),
  files_done: Count.default(0),
  total_bytes: Count.default(0),
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
  /** restic 0.14 gives the short form. */
  snapshot_id: z.string().regex(/^[0-9a-f]{8,64}$/),
});
export type BackupSummary = z.output<typeof BackupSummary>;

export const BackupLine = z.discriminatedUnion('message_type', [BackupStatus, BackupSummary]);

/** stderr of `backup --json`: a file that could not be read. */
export const BackupErrorLine = z.object({
  message_type: z.literal('error'),
  error: z.looseObject({ message: z.string().optional(), Err: z.unknown() }).optional(),
  item: z.string().default(''),
});

/** `total_file_count` counts directories and links, too; hard links count once in `total_size`. */
export const SnapshotStats = z.object({ total_size: Count, total_file_count: Count });
export type SnapshotStats = z.output<typeof SnapshotStats>;

/** A line of `ls --json`: of the snapshot, then of each entry. What is no regular file has no size. */
export const ListLine = z.discriminatedUnion('struct_type', [
  z.object({ struct_type: z.literal('snapshot'), id: z.string().regex(/^[0-9a-f]{64}$/) }),
  z.object({
    struct_type: z.literal('node'),
    type: z.string(),
    path: z.string(),
    size: Count.default(0),
    /** As Go's os.FileMode has it. */
    mode: Count,
    mtime: z.string(),
  }),
]);
export type ListedNode = Extract<z.output<typeof ListLine>, { struct_type: 'node' }>;

/** Undefined when the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// MERGED agent/backups/restic-output.ts: What restic's plain-text errors mean, and its lines without secrets. Pure (agent reference 14).
/** Somebody else works on the repository alone, as a prune does: it passes. */
export type ResticProblem = OperationError | 'locked';

/**
 * Where restic runs: a full disk is the repository's while it is written, unless it is what restic puts packs together
 * in, and this host's while it is restored.
 */
export type ResticWork = 'repository' | 'restore';

/** In this order: restic asks `Is there a repository` of whatever it could not open. */
const PROBLEMS: readonly (readonly [RegExp, ResticProblem])[] = [
  [/already locked/i, 'locked'],
  [/wrong password or no key found/i, 'RepositoryAuth'],
  [
    /\b(?:401|403)\b|access ?denied|forbidden|unauthorized|permission denied|InvalidAccessKeyId|SignatureDoesNotMatch/i,
    'RepositoryAuth',
  ],
  [
    /no space left|quota|\b(?:413|507)\b|insufficient storage|request entity too large|EntityTooLarge/i,
    'RepositoryNoSpace',
  ],
  [
    /connection refused|no such host|i\/o timeout|network is unreachable|no route to host|connection reset|broken pipe|https?:[^\n]*\bEOF\b|tls:|x509:|context deadline exceeded|\b(?:500|502|503|504)\b|subprocess ssh exited/i,
    'RepositoryUnreachable',
  ],
  [
    /ciphertext verification failed|does not match|invalid data returned|repository contains errors|seal is broken|wrong hash|unable to load (?:index|tree)|load(?:ing)? ?(?:index|tree|blob).*(?:failed|error|not found)|not found in (?:the )?(?:index|repository)|unexpected EOF|\binvalid character\b|header length|truncated|is damaged|invalid child node name|does not exist.*\/(?:data|index)\/|data\/[0-9a-f]{2}\/.*no such file/i,
    'RepositoryCorrupt',
  ],
  [/no matching ID found|no snapshot found|snapshot .*not found/i, 'SnapshotMissing'],
  [/unable to open config file|is there a repository at/i, 'RepositoryMissing'],
];

/** The problem that these lines of stderr tell of; `EngineFailed` when they say nothing known. */
export function problemOf(stderr: string, work: ResticWork = 'repository'): ResticProblem {
  const found = PROBLEMS.find(([pattern]) => pattern.test(stderr))?.[1] ?? 'EngineFailed';
  const isFull = found === 'RepositoryNoSpace' && /no space left/i.test(stderr);
  const isLocal = work === 'restore' || /\/restic-[\w-]+: no space left/i.test(stderr);
  return isFull && isLocal ? 'NoSpace' : found;
}

const MAX_LINE_CHARS = 300;
const REASON_CHARS = 100;
const CREDENTIALS_IN_URL = /(\/\/)[^/\s@]+@/g;

/**
 * A line as it may be shown: `secrets` and credentials in addresses left out, paths of the host as the
 * pod knows them (`paths`: from host to pod), control characters gone, bounded.
 */
export function redactLine(
  line: string,
  { secrets, paths }: { secrets: readonly string[]; paths: readonly (readonly [string, string])[] },
): string {
  let text = line.replaceAll(/\p{Cc}/gu, ' ').replaceAll(CREDENTIALS_IN_URL, '$1***@');
  for (const secret of secrets) if (secret !== '') text = text.replaceAll(secret, '***');
  for (const [host, pod] of paths) text = text.replaceAll(host, pod);
  if (text.length <= MAX_LINE_CHARS) return text;
  // The reason is at the end, after a path that may be long.
  return `${text.slice(0, MAX_LINE_CHARS - REASON_CHARS)}…${text.slice(-REASON_CHARS)}`;
}
