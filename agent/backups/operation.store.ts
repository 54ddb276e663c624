/** Queries on the table `operations`: backups, restores and drills on this host. */
import { z } from 'zod';
import {
  BackupRequest,
  DrillRequest,
  FileList,
  OPERATION_ERRORS,
  OperationView,
  QUALITIES,
  RestoreRequest,
} from '#shared/api/agent/operations.ts';
import type { DatabaseSync } from '#shared/runtime/sqlite.ts';

/** Findings of a backup. */
const BackupJournal = z.object({
  /** Damage of the repository, as a sentence. */
  damage: z.string(),
});

/** Progress of a restore's exchange of trees. Paths are host paths. */
export const RestoreJournal = z.object({
  /**
   * Folder beside the data volume or layer, which the pod cannot reach. Contains the staged tree, and from the exchange
   * on the old tree.
   */
  folder: z.string(),
  /** Path that the restored tree replaces. */
  live: z.string(),
  /** Path below `folder`. */
  staged: z.string(),
  /**
   * True if an entry at `live` must be moved aside before the new tree is moved in. An entry that only the image has
   * does not count. Set when the pod has stopped, at the step `ready`.
   */
  had_old: z.boolean(),
  /** Container whose layer has the path; null for a volume. */
  container_id: z.string().nullable().default(null),
  /** True if the pod was running before the restore: only then must it run afterwards. */
  was_running: z.boolean(),
  /**
   * True if the tree is moved into a volume while the pod runs, because the path does not exist or is an empty
   * folder.
   */
  is_live: z.boolean().default(false),
  /**
   * Pod paths of files and folders that could not be read from a damaged snapshot; null if the restore accepts no
   * damage.
   */
  lost: FileList.nullable().default(null),
  step: z.enum(['fetching', 'staged', 'ready', 'old_aside', 'new_in', 'undoing', 'undone']),
});
export type RestoreJournal = z.output<typeof RestoreJournal>;

/** Folder to which a drill restores; a host path. */
export const VerifyJournal = z.object({ folder: z.string() });

const Progress = OperationView.pick({
  total_files: true,
  processed_files: true,
  total_bytes: true,
  processed_bytes: true,
  percent: true,
  bytes_per_second: true,
  remaining_seconds: true,
});
export type Progress = z.output<typeof Progress>;

const Common = z.object({
  id: z.string(),
  pod_id: z.string(),
  stage: OperationView.shape.stage,
  fingerprint: z.string(),
  sealed_repository: z.string().nullable(),
  progress: Progress,
  attempts: z.int(),
  cancel_requested: z.boolean(),
  snapshot_id: z.string().nullable(),
  quality: z.enum(QUALITIES).nullable(),
  changed: OperationView.shape.changed_files,
  error: z.object({ code: z.enum(OPERATION_ERRORS), message: z.string() }).nullable(),
  log: z.array(z.string()),
  started_ms: z.int(),
  heartbeat_ms: z.int(),
  finished_ms: z.int().nullable(),
});

export const OperationRow = z.discriminatedUnion('kind', [
  Common.extend({
    kind: z.literal('backup'),
    request: BackupRequest.omit({ repository: true }),
    journal: BackupJournal.nullable(),
  }),
  Common.extend({
    kind: z.literal('restore'),
    request: RestoreRequest.omit({ repository: true }),
    journal: RestoreJournal.nullable(),
  }),
  Common.extend({
    kind: z.literal('verify'),
    request: DrillRequest.omit({ repository: true }),
    journal: VerifyJournal.nullable(),
  }),
]);
export type OperationRow = z.output<typeof OperationRow>;
export type BackupRow = Extract<OperationRow, { kind: 'backup' }>;
export type RestoreRow = Extract<OperationRow, { kind: 'restore' }>;
export type VerifyRow = Extract<OperationRow, { kind: 'verify' }>;

export type OperationStore = ReturnType<typeof createOperationStore>;

/** Number of finished rows to retain, newest first. */
const MAX_FINISHED = 500;

const JSON_COLUMNS = ['request', 'progress', 'journal', 'error', 'log', 'changed'] as const;
const PLAIN_COLUMNS = [
  ...['id', 'pod_id', 'kind', 'stage', 'fingerprint', 'sealed_repository', 'attempts'],
  ...['snapshot_id', 'quality', 'started_ms', 'heartbeat_ms', 'finished_ms'],
] as const;
const COLUMNS = [
  ...PLAIN_COLUMNS,
  'cancel_requested',
  ...JSON_COLUMNS.map((name) => `${name}_json`),
];

/** Rows that fail to parse are skipped and count as absent. */
export function createOperationStore(database: DatabaseSync) {
  const select = database.prepare('SELECT * FROM operations WHERE id = :id');
  const active = database.prepare(
    'SELECT * FROM operations WHERE pod_id = :pod_id AND finished_ms IS NULL',
  );
  const unfinished = database.prepare(
    'SELECT * FROM operations WHERE finished_ms IS NULL ORDER BY started_ms, id LIMIT :limit',
  );
  const finished = database.prepare(
    `SELECT * FROM operations WHERE finished_ms IS NOT NULL
     ORDER BY finished_ms DESC, id LIMIT :limit`,
  );
  const last = database.prepare(
    `SELECT * FROM operations WHERE finished_ms IS NOT NULL AND pod_id = :pod_id
     ORDER BY finished_ms DESC, id LIMIT 1`,
  );
  const write = database.prepare(
    `INSERT INTO operations (${COLUMNS.join(', ')})
     VALUES (${COLUMNS.map((name) => `:${name}`).join(', ')})
     ON CONFLICT (id) DO UPDATE SET ${COLUMNS.map((name) => `${name} = excluded.${name}`).join(', ')}`,
  );
  const dropOld = database.prepare(
    `DELETE FROM operations WHERE finished_ms < :before_ms OR id IN (
       SELECT id FROM operations WHERE finished_ms IS NOT NULL
       ORDER BY finished_ms DESC, id LIMIT -1 OFFSET :keep)`,
  );

  return {
    get: (id: string): OperationRow | null => rowOf(select.get({ id })),
    /** Returns the pod's unfinished operation. */
    activeOf: (podId: string): OperationRow | null => rowOf(active.get({ pod_id: podId })),
    /** Oldest first. */
    unfinished: (limit: number): OperationRow[] =>
      unfinished.all({ limit }).flatMap((row) => rowOf(row) ?? []),
    /** Latest first. */
    finished: (limit: number): OperationRow[] =>
      finished.all({ limit }).flatMap((row) => rowOf(row) ?? []),
    /** Returns the operation that ended last. */
    lastOf: (podId: string): OperationRow | null => rowOf(last.get({ pod_id: podId })),
    /** Throws if the pod has another unfinished operation. */
    put: (row: OperationRow): void => void write.run(columnsOf(row)),
    dropFinishedBefore(beforeMs: number): void {
      dropOld.run({ before_ms: beforeMs, keep: MAX_FINISHED });
    },
  };
}

function rowOf(columns: Record<string, unknown> | undefined): OperationRow | null {
  if (columns === undefined) return null;
  const row: Record<string, unknown> = {
    ...columns,
    cancel_requested: columns['cancel_requested'] === 1,
  };
  for (const name of JSON_COLUMNS) row[name] = parse(columns[`${name}_json`]);
  return OperationRow.safeParse(row).data ?? null;
}

function parse(text: unknown): unknown {
  try {
    return typeof text === 'string' ? JSON.parse(text) : null;
  } catch {
    return undefined;
  }
}

function columnsOf(row: OperationRow): Record<string, string | number | null> {
  const columns: Record<string, string | number | null> = {
    cancel_requested: row.cancel_requested ? 1 : 0,
  };
  for (const name of PLAIN_COLUMNS) columns[name] = row[name];
  for (const name of JSON_COLUMNS) {
    columns[`${name}_json`] = row[name] === null ? null : JSON.stringify(row[name]);
  }
  return columns;
}
