/** Opens, locks and migrates the agent's database file. Its tables are in schema.sql and the later migrations. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from '#shared/runtime/config.ts';
import { hasCode, messageOf } from '#shared/runtime/errors.ts';
import { requireWritableFolder } from '#shared/runtime/files.ts';
import {
  type DatabaseSync,
  inTransaction,
  lockExclusively,
  openSqlite,
} from '#shared/runtime/sqlite.ts';

/** Applied in order and never edited after a release. A store with schema n has had the first n migrations. */
const MIGRATIONS = [
  './schema.sql',
  './schema-2-ssh.sql',
  './schema-3-change.sql',
  './schema-4-notebook.sql',
  './schema-5-gpu.sql',
  './schema-6-images.sql',
  './schema-7-boot.sql',
  './schema-8-operations.sql',
  './schema-9-volumes.sql',
  './schema-10-update.sql',
  './schema-11-standing.sql',
  './schema-12-changed-files.sql',
  './schema-13-secrets.sql',
  './schema-14-launch.sql',
  './schema-15-ssh-ports.sql',
].map((file) => readFileSync(new URL(file, import.meta.url), 'utf8'));

/** Newest schema of this version. */
export const SCHEMA: number = MIGRATIONS.length;
/**
 * Code of every SQLite error. The agent takes the lock after it opened the file, so at that point the error means that
 * another process has the lock.
 */
const LOCKED = 'ERR_SQLITE_ERROR';
const REMEDY = 'stop the other agent, or set another AGENT_HOME and AGENT_PORT for this one';
/** The store's file in the agent's home. */
export const STORE_FILE = 'agent.sqlite';

/** Schema of an opened store; 0 before the first migration. */
export function schemaOf(database: DatabaseSync): number {
  const found = database.prepare(`SELECT value FROM meta WHERE name = 'schema'`).get();
  return Number(found?.['value'] ?? 0);
}

/** Opens or creates the store at `path` (`:memory:` for memory) and migrates it to the newest schema. */
export function openDatabase(path: string): DatabaseSync {
  const database = openSqlite(path);
  migrate(database);
  return database;
}

/** Opens the store of a home folder exclusively. Throws if another agent uses it, and ConfigError if it is not writable. */
export function openHome(home: string): { database: DatabaseSync; close(): void } {
  const lock = lockHome(home);
  const database = openDatabase(join(home, STORE_FILE));
  return {
    database,
    close() {
      database.close();
      lock.close();
    },
  };
}

function lockHome(home: string): DatabaseSync {
  requireWritableFolder(home, 'AGENT_HOME');
  try {
    return lockExclusively(join(home, 'agent.lock'));
  } catch (cause) {
    if (hasCode(cause, LOCKED)) throw new Error(`another agent uses ${home}: ${REMEDY}`, { cause });
    throw new ConfigError(`AGENT_HOME ${home} cannot be written: ${messageOf(cause)}`, { cause });
  }
}

function migrate(database: DatabaseSync): void {
  inTransaction(database, () => {
    database.exec(
      'CREATE TABLE IF NOT EXISTS meta (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) STRICT',
    );
    const schema = schemaOf(database);
    if (schema > SCHEMA) {
      throw new ConfigError(
        `the store has schema ${schema}, newer than this agent's ${SCHEMA}: run the version that last used the store, or a newer one`,
      );
    }
    for (const step of MIGRATIONS.slice(schema)) database.exec(step);
    database
      .prepare(
        `INSERT INTO meta (name, value) VALUES ('schema', :schema)
         ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
      )
      .run({ schema: String(SCHEMA) });
  });
}
