/** Opens, locks and migrates the agent's database file. Its tables are in schema.sql and the later migrations. */
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import { fileTime } from '#shared/runtime/clock.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { hasCode, messageOf } from '#shared/runtime/errors.ts';
import { requireWritableFolder, syncFolder } from '#shared/runtime/files.ts';
import {
  checkpoint,
  type DatabaseSync,
  findDamage,
  inTransaction,
  isEmptyDatabase,
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

/** Returns true if the store has pods that are not removed. */
export function hasPods(database: DatabaseSync): boolean {
  return (
    database.prepare(`SELECT 1 FROM pods WHERE phase <> 'removed' LIMIT 1`).get() !== undefined
  );
}

/** Opens or creates the store at `path` (`:memory:` for memory) and migrates it to the newest schema. */
export function openDatabase(path: string): DatabaseSync {
  const database = openSqlite(path);
  migrate(database);
  return database;
}

/**
 * Why a store was built anew, and facts for the rebuild. Stored until all pods of the store are known again.
 */
const Rebuild = z.object({
  /** Fault of the old store, and the path to which it was moved. */
  cause: z.string(),
  /** Ports of the SSH gateway by pod id, which no container shows. */
  ssh_ports: z.record(z.string(), z.int()),
});
export type Rebuild = z.output<typeof Rebuild>;

const REBUILD_ROW = 'rebuild';
/** Key files of an agent. A home whose store was created must have both. */
const KEY_FILES = ['identity.key', 'secret.key'];
/**
 * Suffix of the marker file beside the store. The marker shows that the store existed: if the store is then
 * missing or has lost its tables, the agent builds it anew, like a damaged store.
 */
const CREATED = '.created';
const JOURNALS = ['-wal', '-shm'];
/**
 * Number of pages in the write-ahead log at which SQLite copies the log into the store. If the log is lost,
 * at most about as many pages of changes are lost; a transaction of the agent writes only a few.
 */
const CHECKPOINT_PAGES = 50;
/** Number of damaged stores that are kept. */
const KEPT = 3;

type HomeOptions = {
  nowMs: number;
  /** Reads the ports of the SSH gateway that a rebuild needs. */
  sshPorts(): Rebuild['ssh_ports'];
  /**
   * Opens the key files, and creates those of a new home; from the next start on, a missing key file is an
   * error. Null for a command that needs no key.
   */
  openKeys: (() => void) | null;
};

/**
 * Opens the store of a home folder exclusively. Moves a damaged store, or a store that lost its tables,
 * aside. Replaces such a store, or a missing store, by an empty store for which `rebuildOf` returns the
 * cause. Throws Error if another agent uses the home. Throws ConfigError if the home is not writable, a key
 * file is missing, a damaged store cannot be moved, or the schema is newer than this version.
 */
export function openHome(
  home: string,
  { nowMs, sshPorts, openKeys }: HomeOptions,
): { database: DatabaseSync; close(): void } {
  const lock = lockHome(home);
  if (openKeys !== null) requireKeyFiles(home);
  openKeys?.();
  const path = join(home, STORE_FILE);
  const cause = lossOf(path, nowMs);
  const database = openDatabase(path);
  if (cause !== null) setRebuild(database, { cause, ssh_ports: sshPorts() });
  // Limits the changes that are lost with a lost write-ahead log.
  database.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
  checkpoint(database);
  if (openKeys !== null) writeFileSync(`${path}${CREATED}`, '', { mode: 0o600 });
  return {
    database,
    close() {
      database.close();
      lock.close();
    },
  };
}

/** Moves a damaged store aside. Returns why the store is lost; null if it is intact or this is the first start. */
function lossOf(path: string, nowMs: number): string | null {
  const existed = existsSync(`${path}${CREATED}`);
  const finding = existsSync(path) ? findingIn(path, existed) : null;
  if (existsSync(path) && finding === null) return null;
  if (finding === null && !existed) return null;
  const aside = `${path}.damaged-${fileTime(nowMs)}`;
  try {
    // Moves the write-ahead log first: SQLite would write the contents of an old log into an empty store
    // beside it.
    for (const end of [...JOURNALS, '']) {
      if (existsSync(`${path}${end}`)) renameSync(`${path}${end}`, `${aside}${end}`);
    }
    syncFolder(dirname(path));
    dropOldest(path);
  } catch (cause) {
    const state = finding === null ? 'is missing' : `is damaged (${finding})`;
    const message = `the store ${path} ${state}, and its files cannot be moved aside: ${messageOf(cause)}`;
    throw new ConfigError(message, { cause });
  }
  if (finding === null) return `the store ${path} was missing`;
  return `the store ${path} was damaged (${finding}) and was moved to ${aside}`;
}

function findingIn(path: string, existed: boolean): string | null {
  return existed && isEmptyDatabase(path) ? 'it lost its tables' : findDamage(path);
}

function dropOldest(path: string): void {
  const folder = dirname(path);
  const kept = readdirSync(folder)
    .filter((name) => name.startsWith(`${basename(path)}.damaged-`) && !/-(?:wal|shm)$/.test(name))
    .toSorted();
  for (const name of kept.slice(0, -KEPT)) {
    for (const end of ['', ...JOURNALS]) rmSync(join(folder, `${name}${end}`), { force: true });
  }
}

/** Returns why the store was built anew; null once all its pods are known again. */
export function rebuildOf(database: DatabaseSync): Rebuild | null {
  const found = database.prepare('SELECT value FROM meta WHERE name = :name');
  const text = found.get({ name: REBUILD_ROW })?.['value'];
  return typeof text === 'string' ? Rebuild.parse(JSON.parse(text)) : null;
}

function setRebuild(database: DatabaseSync, rebuild: Rebuild): void {
  database
    .prepare('INSERT OR REPLACE INTO meta (name, value) VALUES (:name, :value)')
    .run({ name: REBUILD_ROW, value: JSON.stringify(rebuild) });
}

/** Records that all pods of the store are known again. */
export function endRebuild(database: DatabaseSync): void {
  database.prepare('DELETE FROM meta WHERE name = :name').run({ name: REBUILD_ROW });
}

/** Throws ConfigError if a key file of a home with a store is missing, because another key would take its place. */
function requireKeyFiles(home: string): void {
  const marker = `${join(home, STORE_FILE)}${CREATED}`;
  const missing = KEY_FILES.map((name) => join(home, name)).find((path) => !existsSync(path));
  if (missing === undefined || !existsSync(marker)) return;
  throw new ConfigError(
    `the key ${missing} is missing, although ${marker} shows that this agent has run. Restore the file from a backup. ` +
      `To begin with a new key, delete ${marker}; the provider must then enrol the agent again.`,
  );
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
