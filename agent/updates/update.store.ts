/** The one row that says how the update of this agent stands. */
import type { DatabaseSync } from '#shared/runtime/sqlite.ts';
import { NO_UPDATE, UpdateRow } from './update.state.ts';

export type UpdateStore = ReturnType<typeof createUpdateStore>;

/** Of any database that has had schema 10. */
export function createUpdateStore(database: DatabaseSync) {
  const select = database.prepare('SELECT row_json FROM agent_update WHERE id = 1');
  const write = database.prepare(
    `INSERT INTO agent_update (id, row_json) VALUES (1, :row_json)
     ON CONFLICT (id) DO UPDATE SET row_json = excluded.row_json`,
  );
  return {
    get(): UpdateRow {
      const text = select.get()?.['row_json'];
      if (typeof text !== 'string') return NO_UPDATE;
      // A row that another version wrote in a way of its own is not worth an agent that does not work.
      return UpdateRow.safeParse(JSON.parse(text)).data ?? NO_UPDATE;
    },
    /** On disk when it returns. */
    put: (row: UpdateRow): void => void write.run({ row_json: JSON.stringify(row) }),
  };
}
