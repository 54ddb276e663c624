/** The agent's store as the old version left it: a newer one may bring a schema that the old one cannot read. */
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { syncFolder } from '#shared/runtime/files.ts';
import { openSqlite } from '#shared/runtime/sqlite.ts';
import { schemaOf } from '../database/database.ts';
import type { Target } from './update.state.ts';
import { createUpdateStore } from './update.store.ts';

export type StoreCopy = {
  /** Called while nobody writes. One of this target stays: the store may be the new version's by now. */
  make(target: Target): void;
  /**
   * Puts the copy back where the store has a newer schema than this version knows, but for the row of the update;
   * what else the new version wrote is lost with it. Called while no agent runs.
   */
  restoreIfNewer(target: Target): void;
  drop(target: Target): void;
};

/** Of the database at `path`; `known` is the newest schema of this version. */
export function createStoreCopy(path: string, known: number): StoreCopy {
  const prefix = `${path}.before-`;
  const copyFor = ({ sequence, digest }: Target) => `${prefix}${sequence}-${digest.slice(7, 19)}`;
  const drop = (target: Target) => rmSync(copyFor(target), { force: true });

  /** Those of switches that were cut off at their very end. */
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
      // SQLite takes an empty file, and neither narrows its mode nor flushes what it has written.
      const file = openSync(part, 'w', 0o600);
      const database = openSqlite(path);
      database.prepare('VACUUM INTO :part').run({ part });
      database.close();
      fsyncSync(file);
      closeSync(file);
      renameSync(part, copy);
      // There before the new version may change the store.
      syncFolder(dirname(path));
    },
    restoreIfNewer(target) {
      const copy = copyFor(target);
      if (!existsSync(copy)) return;
      const present = openSqlite(path);
      const isNewer = schemaOf(present) > known;
      const row = createUpdateStore(present).get();
      // The last connection to close leaves no journal beside it that would be taken for the copy's.
      present.close();
      if (isNewer) {
        const restored = openSqlite(copy);
        createUpdateStore(restored).put(row);
        restored.close();
        // Journals that came back after a power cut would be taken for those of the copy.
        syncFolder(dirname(path));
        renameSync(copy, path);
        syncFolder(dirname(path));
      }
      drop(target);
    },
    drop,
  };
}
