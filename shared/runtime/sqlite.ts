/** The one home of node:sqlite: how every database file of ours is opened. */
import { closeSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { messageOf } from './errors.ts';
import { makeFolder } from './files.ts';

export type { DatabaseSync, StatementSync } from 'node:sqlite';

const BUSY_TIMEOUT_MS = 5_000;
/** SQLITE_FULL; SQLITE_CORRUPT and SQLITE_NOTADB; SQLITE_READONLY and SQLITE_CANTOPEN. */
const FULL = 13;
const NO_DATABASE = [11, 26];
const NOT_OPENED = [8, 14];
/** SQLITE_READONLY_ROLLBACK. */
const TO_BE_ROLLED_BACK = 776;
/** The code itself; above it SQLite says more. */
const PRIMARY_CODE = 0xff;

/**
 * Opens `path` (or `:memory:`) with WAL and synchronous FULL: a commit that returned survives kill -9
 * and power loss. Creates the folder with mode 0700, the file and those beside it with 0600. Throws with its name.
 */
export function openSqlite(path: string): DatabaseSync {
  try {
    return openDurably(path);
  } catch (cause) {
    // SQLite names no file.
    throw new Error(`the database ${path} cannot be opened: ${messageOf(cause)}`, { cause });
  }
}

function openDurably(path: string): DatabaseSync {
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
  return hasErrcode(error, [FULL]);
}

/** Whether a file turned out to be none of SQLite's, or a part of one. */
export function isNoDatabase(error: unknown): boolean {
  return hasErrcode(error, NO_DATABASE);
}

/** Whether SQLite may not open a file, or the journal beside it, as it has to. */
export function isNotOpened(error: unknown): boolean {
  return hasErrcode(error, NOT_OPENED);
}

/** Whether a process died while it wrote a file that was none of WAL: the next one that may write puts it back. */
export function isToBeRolledBack(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === TO_BE_ROLLED_BACK;
}

function hasErrcode(error: unknown, codes: readonly number[]): boolean {
  if (!(error instanceof Error && 'errcode' in error)) return false;
  return codes.includes(Number(error.errcode) & PRIMARY_CODE);
}

/** SQLite gives its journals the mode of the database, and leaves an empty file as it was made. */
function createPrivately(path: string): void {
  makeFolder(dirname(path));
  closeSync(openSync(path, 'a', 0o600));
}
