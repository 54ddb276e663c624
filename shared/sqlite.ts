/** The one home of node:sqlite: how every database file of ours is opened. */
import { closeSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { makeFolder } from './make-folder.ts';

export type { DatabaseSync, StatementSync } from 'node:sqlite';

const BUSY_TIMEOUT_MS = 5_000;
/** SQLITE_FULL and SQLITE_NOTADB. */
const FULL = 13;
const NOT_A_DATABASE = 26;

/**
 * Opens `path` (or `:memory:`) with WAL and synchronous FULL: a commit that returned survives kill -9
 * and power loss. Creates the folder with mode 0700, the file and those beside it with 0600.
 */
export function openSqlite(path: string): DatabaseSync {
  if (path !== ':memory:') createPrivately(path);
  const database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
  database.exec('PRAGMA journal_mode = WAL');
  database.exec('PRAGMA synchronous = FULL');
  database.exec('PRAGMA foreign_keys = ON');
  return database;
}

/** Opens `path`, which has to be there, for reading alone: for a look beside the process whose it is. */
export function openSqliteToRead(path: string): DatabaseSync {
  return new DatabaseSync(path, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
}

/** Runs `body` in one IMMEDIATE transaction; rolls back and rethrows on any error. Not re-entrant. */
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
 * Takes an exclusive lock on `path` until the process ends, however it ends (the kernel drops it).
 * Throws when another process holds it: two daemons on one store would fight.
 */
export function lockExclusively(path: string): DatabaseSync {
  createPrivately(path);
  const lock = new DatabaseSync(path, { timeout: 0 });
  lock.exec('PRAGMA locking_mode = EXCLUSIVE');
  lock.exec('BEGIN EXCLUSIVE');
  return lock;
}

/** Whether a write failed because the disk, or the file by its bound, is full. */
export function isDiskFull(error: unknown): boolean {
  return hasErrcode(error, FULL);
}

/** Whether a file turned out to be none of SQLite's. */
export function isNoDatabase(error: unknown): boolean {
  return hasErrcode(error, NOT_A_DATABASE);
}

function hasErrcode(error: unknown, code: number): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === code;
}

/** SQLite gives its journals the mode of the database, and leaves an empty file as it was made. */
function createPrivately(path: string): void {
  makeFolder(dirname(path));
  closeSync(openSync(path, 'a', 0o600));
}
