/**
 * Reference for work that writes to SQLite: the rows that the work inserts and changes are recorded on a copy of the
 * database, and then written to another copy without any other work, in as many commits.
 */
import { copyFileSync } from 'node:fs';
import { type DatabaseSync, openSqlite } from '#shared/runtime/sqlite.ts';
import type { Database } from '../../validator/central/platform/database/tables.ts';
import { handleOf } from '../fakes/scenes/central-database.ts';
import { openedBy, TEST_SECRET } from '../fakes/scenes/central-fixture.ts';

/** A database through both of its handles. `db.destroy` closes both. */
export type Copy = { file: DatabaseSync; db: Database };

/** Copies a database of the central API with all committed rows, and opens the copy. */
export function copiedFile(from: string, to: string): DatabaseSync {
  const source = openSqlite(from);
  source.exec('pragma wal_checkpoint(truncate)');
  source.close();
  copyFileSync(from, to);
  return openSqlite(to);
}

/** Copies a database as `copiedFile` does, for work on stores and services. */
export function copyOf(from: string, to: string): Copy {
  const file = copiedFile(from, to);
  return { file, db: openedBy(handleOf(file), TEST_SECRET) };
}

/**
 * Returns a handle that records the rows which each of its transactions inserts and changes. `take` returns those of the
 * transactions since the last call. Transactions without a change are omitted.
 */
export function recordCommits(file: DatabaseSync): { db: Database; take(): Uint8Array[] } {
  let session = file.createSession();
  let changes: Uint8Array[] = [];
  const endCommit = () => {
    const change = session.changeset();
    session.close();
    session = file.createSession();
    if (change.length > 0) changes.push(change);
  };
  return {
    db: handleOf(file, endCommit),
    take() {
      endCommit();
      const taken = changes;
      changes = [];
      return taken;
    },
  };
}

/** Does each piece of work in turn and returns the rows that each has inserted and changed. */
export async function changesOf(
  { file, db }: Copy,
  work: readonly ((db: Database) => Promise<unknown>)[],
): Promise<Uint8Array[]> {
  const changes: Uint8Array[] = [];
  for (const each of work) {
    const session = file.createSession();
    await each(db);
    changes.push(session.changeset());
    session.close();
  }
  return changes;
}

/** Writes recorded rows in one transaction. Throws if a row does not fit. */
export function writeBare({ file }: Pick<Copy, 'file'>, change: Uint8Array): void {
  if (!file.applyChangeset(change)) throw new Error('the rows do not fit');
}
