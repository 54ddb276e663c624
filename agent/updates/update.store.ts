/** The row of the agent's update, and the copy of the agent's store for a rollback. */

import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { syncFolder } from '#shared/runtime/files.ts';
import { copySqlite, type DatabaseSync, openSqlite } from '#shared/runtime/sqlite.ts';
import { schemaOf } from '../database/database.ts';
import { NO_UPDATE, type Target, UpdateRow } from './update.state.ts';

export type UpdateStore = ReturnType<typeof createUpdateStore>;

/** Works on any database with schema 10 or newer. */
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
      // Ignores a row in another version's format, so that the agent can start.
      return UpdateRow.safeParse(JSON.parse(text)).data ?? NO_UPDATE;
    },
    /** Synced to disk when it returns. */
    put: (row: UpdateRow): void => void write.run({ row_json: JSON.stringify(row) }),
  };
}

export type StoreCopy = {
  /**
   * Copies the store while no process writes to it. Keeps an existing copy for this target: the new version may have
   * run since.
   */
  make(target: Target): void;
  /**
   * If the store's schema is newer than this version, restores the copy, except the row of the update. Other writes of
   * the new version are lost. Call only while no agent runs.
   */
  restoreIfNewer(target: Target): void;
  drop(target: Target): void;
};

/** `path`: the database; `known`: the newest schema of this version. */
export function createStoreCopy(path: string, known: number): StoreCopy {
  const prefix = `${path}.before-`;
  const copyFor = ({ sequence, digest }: Target) => `${prefix}${sequence}-${digest.slice(7, 19)}`;
  const drop = (target: Target) => rmSync(copyFor(target), { force: true });

  /** Removes the copies of updates that were interrupted before they removed their copy. */
  function dropOthers(): void {
    const folder = dirname(path);
    const left = readdirSync(folder).filter((name) => name.startsWith(basename(prefix)));
    for (const name of left) rmSync(join(folder, name), { force: true });
  }

  return {
    make(target) {
      const copy = copyFor(target);
      if (existsSync(copy)) return;
      dropOthers();
      const part = `${copy}.part`;
      rmSync(part, { force: true });
      copySqlite(path, part);
      renameSync(part, copy);
      // Synced before the new version may change the store.
      syncFolder(dirname(path));
    },
    restoreIfNewer(target) {
      const copy = copyFor(target);
      if (!existsSync(copy)) return;
      const present = openSqlite(path);
      const isNewer = schemaOf(present) > known;
      const row = createUpdateStore(present).get();
      // Closing the last connection removes the journal, which SQLite would otherwise apply to the copy.
      present.close();
      if (isNewer) {
        const restored = openSqlite(copy);
        createUpdateStore(restored).put(row);
        restored.close();
        // Otherwise a journal that reappears after a power cut would be applied to the copy.
        syncFolder(dirname(path));
        renameSync(copy, path);
        syncFolder(dirname(path));
      }
      drop(target);
    },
    drop,
  };
}
