/**
 * Backups of a database file: consistent copies with checksums in a folder, of which the newest are kept. A backup
 * `NAME-NUMBER-TIME.db` is complete once it has this name; its checksum is in the file `….db.sha256`, in the format of
 * sha256sum.
 */
import { createHash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileTime, parseIsoTime } from '#shared/runtime/clock.ts';
import { giveToOwnerOfFolder, makeFolder, syncFolder } from '#shared/runtime/files.ts';
import { copySqlite, findAnyDamage, findDamage, lockExclusively } from '#shared/runtime/sqlite.ts';

export type BackupRequest = {
  /** The database file, which a running process may write to. */
  path: string;
  folder: string;
  nowMs: number;
  /** Number of newest backups that are kept; at least 1. */
  keep: number;
};

export type Backup = { path: string; number: number; atMs: number };

const FOLDER = 'database-backups';
const NUMBER_DIGITS = 6;
const CHUNK_BYTES = 1024 * 1024;
const CHECKSUM = '.sha256';
const PART = '.part';

/** Folder of a database's backups unless another is configured. */
export function backupFolderOf(path: string): string {
  return join(dirname(path), FOLDER);
}

/** Lists the complete backups of a database, newest first. A missing folder has none. */
export function listBackups(path: string, folder: string): Backup[] {
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return names
    .flatMap((name) => {
      const backup = parseName(name, nameOf(path));
      return backup === null ? [] : [{ ...backup, path: join(folder, name) }];
    })
    .toSorted((a, b) => b.number - a.number);
}

/**
 * Copies the database, verifies the copy, publishes it and removes the oldest backups. Returns the path of the backup.
 * Throws if the database or the copy is damaged; then all earlier backups remain.
 */
export function backUpFile({ path, folder, nowMs, keep }: BackupRequest): string {
  makeFolder(folder);
  giveToOwnerOfFolder(folder);
  const lock = lockBackups(path, folder);
  try {
    return backUpLocked({ path, folder, nowMs, keep });
  } finally {
    lock.close();
  }
}

function backUpLocked({ path, folder, nowMs, keep }: BackupRequest): string {
  const damage = findDamage(path);
  if (damage !== null) throw new Error(`the database ${path} is damaged: ${damage}`);
  const name = backupName(path, (listBackups(path, folder)[0]?.number ?? 0) + 1, nowMs);
  removeParts(path, folder);
  const target = join(folder, name);
  const part = `${target}${PART}`;
  try {
    copySqlite(path, part);
    const copied = findAnyDamage(part);
    if (copied !== null) throw new Error(`the copy of ${path} is damaged: ${copied}`);
    writeSynced(`${target}${CHECKSUM}`, `${sha256Of(part)}  ${name}\n`);
    giveToOwnerOfFolder(part);
    giveToOwnerOfFolder(`${target}${CHECKSUM}`);
    // The checksum's name is on disk before the backup's: a backup without a checksum was made by other means.
    syncFolder(folder);
    renameSync(part, target);
    syncFolder(folder);
  } finally {
    removeParts(path, folder);
  }
  for (const { path: old } of listBackups(path, folder).slice(keep)) {
    rmSync(old, { force: true });
    rmSync(`${old}${CHECKSUM}`, { force: true });
  }
  return target;
}

/** Locks the backups of a database: a concurrent backup would remove the unfinished copy of this backup. */
function lockBackups(path: string, folder: string): { close(): void } {
  const file = join(folder, `${nameOf(path)}.lock`);
  try {
    const lock = lockExclusively(file);
    giveToOwnerOfFolder(file);
    return lock;
  } catch (cause) {
    throw new Error(`another backup of ${path} is in progress: wait until it ends`, { cause });
  }
}

/** Throws unless the backup is undamaged, and equals its checksum if it has one. */
export function verifyBackup(path: string): void {
  if (existsSync(`${path}${CHECKSUM}`)) {
    const [expected] = readFileSync(`${path}${CHECKSUM}`, 'utf8').split(/\s/);
    if (expected !== sha256Of(path))
      throw new Error(`${path} differs from its checksum: use another backup`);
  }
  const damage = findAnyDamage(path);
  if (damage !== null) throw new Error(`${path} is damaged: ${damage}; use another backup`);
}

/** True if `intervalMs` have passed since the newest backup, or the clock was set back by as much. */
export function isBackupDue(
  newest: Backup | undefined,
  intervalMs: number,
  nowMs: number,
): boolean {
  return newest === undefined || Math.abs(nowMs - newest.atMs) >= intervalMs;
}

/** Computes the SHA-256 of a file of any size. */
export function sha256Of(path: string): string {
  const hash = createHash('sha256');
  const chunk = new Uint8Array(CHUNK_BYTES);
  const file = openSync(path, 'r');
  try {
    for (let size = readSync(file, chunk); size > 0; size = readSync(file, chunk)) {
      hash.update(chunk.subarray(0, size));
    }
  } finally {
    closeSync(file);
  }
  return hash.digest('hex');
}

function nameOf(path: string): string {
  return basename(path).replace(/\.[^.]*$/, '');
}

/** Backups are ordered by number and not by time, because the clock may be set back. */
function backupName(path: string, number: number, nowMs: number): string {
  return `${nameOf(path)}-${String(number).padStart(NUMBER_DIGITS, '0')}-${fileTime(nowMs)}.db`;
}

function parseName(name: string, database: string): Omit<Backup, 'path'> | null {
  if (!name.startsWith(`${database}-`)) return null;
  const rest = name.slice(database.length + 1);
  const found = /^(\d{6,})-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\.db$/.exec(rest);
  if (found === null) return null;
  const [, number, year, month, day, hour, minute, second] = found;
  const atMs = parseIsoTime(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  return atMs === null ? null : { number: Number(number), atMs };
}

/** Removes what interrupted backups left: unfinished copies, and checksums without a backup. */
function removeParts(path: string, folder: string): void {
  for (const name of readdirSync(folder)) {
    if (!name.startsWith(`${nameOf(path)}-`)) continue;
    const isLonely =
      name.endsWith(CHECKSUM) && !existsSync(join(folder, name.slice(0, -CHECKSUM.length)));
    if (isLonely || name.includes(`.db${PART}`)) rmSync(join(folder, name), { force: true });
  }
}

function writeSynced(path: string, text: string): void {
  const file = openSync(path, 'wx', 0o600);
  try {
    writeSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
