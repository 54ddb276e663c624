/** restic's JSON, as far as it is read; every line comes from outside and anything else is passed over. */
import { z } from 'zod';

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
