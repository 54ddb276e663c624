/** Queries on the table pod_notebooks. */
import { z } from 'zod';
import { NOTEBOOK_REASONS, NOTEBOOK_STATUSES, NOTEBOOK_STEPS } from '#shared/api/agent/notebook.ts';
import type { DatabaseSync } from '#shared/runtime/sqlite.ts';

/** One row of `pod_notebooks`. */
export const NotebookRow = z.object({
  pod_id: z.string(),
  request: z.int(),
  internal_port: z.int(),
  token: z.string(),
  status: z.enum(NOTEBOOK_STATUSES),
  step: z.enum(NOTEBOOK_STEPS).nullable(),
  reason: z.enum(NOTEBOOK_REASONS).nullable(),
  message: z.string(),
  path: z.string().nullable(),
  exec_id: z.string().nullable(),
  attempts: z.int(),
  next_try_ms: z.int(),
  deadline_ms: z.int(),
  since_ms: z.int(),
});
export type NotebookRow = z.output<typeof NotebookRow>;

export type NotebookStore = ReturnType<typeof createNotebookStore>;

const COLUMNS = Object.keys(NotebookRow.shape);

/** Prepares the queries. A foreign key ties each row to its pod's row. */
export function createNotebookStore(database: DatabaseSync) {
  const select = database.prepare('SELECT * FROM pod_notebooks WHERE pod_id = :pod_id');
  const selectAll = database.prepare('SELECT * FROM pod_notebooks ORDER BY pod_id');
  const write = database.prepare(
    `INSERT INTO pod_notebooks (${COLUMNS.join(', ')})
     VALUES (${COLUMNS.map((name) => `:${name}`).join(', ')})
     ON CONFLICT (pod_id) DO UPDATE SET ${COLUMNS.map((name) => `${name} = excluded.${name}`).join(', ')}`,
  );

  return {
    get(podId: string): NotebookRow | null {
      const row = select.get({ pod_id: podId });
      return row === undefined ? null : NotebookRow.parse(row);
    },
    list: (): NotebookRow[] => selectAll.all().map((row) => NotebookRow.parse(row)),
    put: (row: NotebookRow): void => void write.run(row),
    /** Changes the row if it still belongs to `request`; otherwise returns null. */
    change(podId: string, request: number, change: Partial<NotebookRow>): NotebookRow | null {
      const row = this.get(podId);
      if (row === null || row.request !== request) return null;
      const next = { ...row, ...change };
      write.run(next);
      return next;
    },
  };
}
