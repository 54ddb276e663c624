/** Opens SQLite databases; the only file that imports node:sqlite. */
import { closeSync, fsyncSync, mkdtempSync, openSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { messageOf } from './errors.ts';
import { makeFolder } from './files.ts';

export type { DatabaseSync, StatementSync } from 'node:sqlite';

/** Address of a database in memory. */
const MEMORY = ':memory:';
/** Address of a database in a temporary file, for data that would fill the memory. */
export const TEMPORARY_FILE = ':temporary:';
/** Part of a temporary database that is in memory: 64 MiB. */
const TEMPORARY_CACHE_KIB = 65_536;

const BUSY_TIMEOUT_MS = 5_000;
/** SQLITE_BUSY; SQLITE_FULL; SQLITE_CORRUPT and SQLITE_NOTADB; SQLITE_READONLY and SQLITE_CANTOPEN. */
const BUSY = 5;
const FULL = 13;
const NO_DATABASE = [11, 26];
const NOT_OPENED = [8, 14];
/** SQLITE_READONLY_ROLLBACK. */
const TO_BE_ROLLED_BACK = 776;
/** The low byte of an extended result code. */
const PRIMARY_CODE = 0xff;

/** Returns true if the database at this address ends with the process that opens it. */
export const isTransient = (address: string): boolean =>
  address === MEMORY || address === TEMPORARY_FILE;

/**
 * Opens `path` with WAL and synchronous FULL: a returned commit survives kill -9 and power loss. `:memory:` and
 * `:temporary:` open databases that end with the process. Creates missing folders with mode 0700, the database and its
 * journals with mode 0600. Errors name the file.
 */
export function openSqlite(path: string): DatabaseSync {
  try {
    return path === TEMPORARY_FILE ? openTemporary() : openDurably(path);
  } catch (cause) {
    // SQLite's messages do not name the file.
    throw new Error(`the database ${path} cannot be opened: ${messageOf(cause)}`, { cause });
  }
}

function openDurably(path: string): DatabaseSync {
  if (path !== MEMORY) createPrivately(path);
  const database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
  database.exec('PRAGMA journal_mode = WAL');
  database.exec('PRAGMA synchronous = FULL');
  database.exec('PRAGMA foreign_keys = ON');
  return database;
}

/**
 * Creates the file in the system's folder of temporary files, and removes its name at once, so that its space is free
 * when the process ends, however it ends. The temporary databases of SQLite, which have an empty path, take at least
 * ten times as long for a commit with a cache of this size.
 */
function openTemporary(): DatabaseSync {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-'));
  try {
    const database = new DatabaseSync(join(folder, 'temporary.db'));
    // Without a name, the file can neither be shared nor have a journal beside it, and it survives no crash.
    database.exec('PRAGMA locking_mode = EXCLUSIVE');
    database.exec('PRAGMA journal_mode = MEMORY');
    database.exec('PRAGMA synchronous = OFF');
    database.exec('PRAGMA foreign_keys = ON');
    database.exec(`PRAGMA cache_size = -${TEMPORARY_CACHE_KIB}`);
    return database;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Opens an existing database read-only, while its owner may have it open. */
export function openSqliteReadOnly(path: string): DatabaseSync {
  return new DatabaseSync(path, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
}

/**
 * Checks the structure of a database file beside the process that writes it. Yields the name of each table before it is
 * read, and reads each table in a separate transaction, so that a caller can pause between them. Returns the first
 * finding, null for an intact file. Throws if the file cannot be opened.
 */
export function* checkTables(path: string): Generator<string, string | null> {
  let database: DatabaseSync | null = null;
  try {
    database = openSqliteReadOnly(path);
    const tables = database
      .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0")
      .all();
    for (const name of ['sqlite_schema', ...tables.map((table) => String(table['name']))]) {
      yield name;
      const finding = checkOne(database, `quick_check("${name.replaceAll('"', '""')}")`);
      if (finding !== null) return finding;
    }
    return null;
  } catch (error) {
    if (isNotADatabase(error)) return messageOf(error);
    // Only the next process that opens it for writing can roll it back.
    if (needsRollback(error)) return null;
    throw error;
  } finally {
    database?.close();
  }
}

/** Returns the first finding of `checkTables` without a pause; null for an intact file. */
export function findDamage(path: string): string | null {
  const steps = checkTables(path);
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

/** Reads a whole database, indexes included, in one transaction. Returns the first finding; null for an intact file. */
export function findAnyDamage(path: string): string | null {
  try {
    const database = openSqliteReadOnly(path);
    try {
      return checkOne(database, 'integrity_check(1)');
    } finally {
      database.close();
    }
  } catch (error) {
    if (isNotADatabase(error)) return messageOf(error);
    throw error;
  }
}

/** Size of the smallest page, and so of the smallest database. */
const MIN_PAGE_BYTES = 512;

/**
 * Returns true if an existing database file has no tables: an empty file is a valid database, and so is a file whose
 * tables were only in a journal that is lost. Returns false for a file of another format.
 */
export function isEmptyDatabase(path: string): boolean {
  // SQLite would delete the journal of a file without a page, also when it only reads.
  if (statSync(path).size < MIN_PAGE_BYTES) return true;
  try {
    const database = openSqliteReadOnly(path);
    try {
      return database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() === undefined;
    } finally {
      database.close();
    }
  } catch (error) {
    if (isNotADatabase(error) || needsRollback(error)) return false;
    throw error;
  }
}

/** Copies the journal into the database file as far as no other connection reads or writes. Never waits. */
export function checkpoint(database: DatabaseSync): void {
  database.exec('PRAGMA wal_checkpoint(PASSIVE)');
}

function checkOne(database: DatabaseSync, pragma: string): string | null {
  const found = Object.values(database.prepare(`PRAGMA ${pragma}`).get() ?? {})[0];
  return found === 'ok' ? null : String(found).replaceAll(/\s+/g, ' ').trim();
}

/**
 * Writes a consistent copy of a database to the new file `target`, mode 0600, while other processes write to the
 * database. The copy is synced to disk.
 */
export function copySqlite(path: string, target: string): void {
  // SQLite accepts an empty file as a target, but neither sets its mode nor syncs its content.
  const file = openSync(target, 'wx', 0o600);
  try {
    const database = openSqliteReadOnly(path);
    try {
      database.prepare('VACUUM INTO :target').run({ target });
    } finally {
      database.close();
    }
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Runs `body` in an IMMEDIATE transaction; rolls back and rethrows any error. Not re-entrant. */
export function inTransaction<T>(database: DatabaseSync, body: () => T): T {
  database.exec('BEGIN IMMEDIATE');
  try {
    const result = body();
    database.exec('COMMIT');
    return result;
  } catch (error) {
    database.exec('ROLLBACK');
    throw error;
  }
}

/**
 * Locks `path` exclusively until the process ends, when the kernel releases the lock. Throws if another process holds
 * it, so that two daemons never share a store.
 */
export function lockExclusively(path: string): DatabaseSync {
  createPrivately(path);
  const lock = new DatabaseSync(path, { timeout: 0 });
  lock.exec('PRAGMA locking_mode = EXCLUSIVE');
  lock.exec('BEGIN EXCLUSIVE');
  return lock;
}

/** Returns true if a statement failed because another connection has locked the database. */
export function isLocked(error: unknown): boolean {
  return hasErrcode(error, [BUSY]);
}

/** Returns true if a write failed because the disk is full or the file has reached its size limit. */
export function isDiskFull(error: unknown): boolean {
  return hasErrcode(error, [FULL]);
}

/** Returns true if a file is not a SQLite database, or is corrupt. */
export function isNotADatabase(error: unknown): boolean {
  return hasErrcode(error, NO_DATABASE);
}

/** Returns true if SQLite could not open a file or its journal, for example for lack of permission. */
export function isOpenFailure(error: unknown): boolean {
  return hasErrcode(error, NOT_OPENED);
}

/**
 * Returns true if a process died while it wrote to a database without WAL. The next process that opens it for writing
 * rolls it back.
 */
export function needsRollback(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === TO_BE_ROLLED_BACK;
}

function hasErrcode(error: unknown, codes: readonly number[]): boolean {
  if (!(error instanceof Error && 'errcode' in error)) return false;
  return codes.includes(Number(error.errcode) & PRIMARY_CODE);
}

/** Creates an empty file with mode 0600; SQLite uses the same mode for the journals. */
function createPrivately(path: string): void {
  makeFolder(dirname(path));
  closeSync(openSync(path, 'a', 0o600));
}
