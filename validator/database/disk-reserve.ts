/**
 * A file beside a SQLite database that occupies disk space, so that urgent changes can be stored on a full disk. Each
 * urgent transaction on a full disk makes it smaller; it grows again when the disk has space.
 */
import { closeSync, openSync, statfsSync, statSync, truncateSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { hasCode } from '#shared/runtime/errors.ts';

const KIB = 1_024;
/** Space for one urgent transaction, which writes at most a few dozen pages. */
const SLICE_BYTES = 256 * KIB;
/** Size of the reserve: 32 urgent transactions. */
export const RESERVE_BYTES = 32 * SLICE_BYTES;
/** The reserve grows only if this much remains free after it, so that it does not fill the disk itself. */
const LEFT_FREE_BYTES = 4 * RESERVE_BYTES;

const reserveOf = (databasePath: string) => `${databasePath}.reserve`;

/** Releases a slice of the reserve if the disk is full and there is a reserve. */
export function useReserve(databasePath: string): void {
  if (freeBytes(databasePath) >= SLICE_BYTES) return;
  const path = reserveOf(databasePath);
  const size = sizeOf(path);
  if (size > 0) truncateSync(path, Math.max(0, size - SLICE_BYTES));
}

/** Creates the reserve, or fills it up, as far as the disk has space. */
export function fillReserve(databasePath: string): void {
  const path = reserveOf(databasePath);
  let size = sizeOf(path);
  if (size >= RESERVE_BYTES || freeBytes(databasePath) < RESERVE_BYTES - size + LEFT_FREE_BYTES) {
    return;
  }
  // Written, because a file that was only extended occupies no space.
  const slice = Buffer.alloc(SLICE_BYTES, 'reserve ');
  const file = openSync(path, 'a', 0o600);
  try {
    for (; size < RESERVE_BYTES; size += SLICE_BYTES) writeSync(file, slice);
  } finally {
    closeSync(file);
  }
}

function freeBytes(databasePath: string): number {
  const { bavail, bsize } = statfsSync(dirname(databasePath));
  return bavail * bsize;
}

/** 0 for a missing file. */
function sizeOf(path: string): number {
  try {
    return statSync(path).size;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return 0;
    throw error;
  }
}
