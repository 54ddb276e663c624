/** Replaces a database file by a backup, while no process uses it. */
import { existsSync, linkSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileTime } from '#shared/runtime/clock.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { giveToOwnerOfFolder, makeFolder, syncFolder } from '#shared/runtime/files.ts';
import { copySqlite, findAnyDamage, openSqlite } from '#shared/runtime/sqlite.ts';
import { verifyBackup } from './database-backup.ts';
import { lockFile, markCreated, moveNotice, requireDatabaseFile } from './open-database.ts';
import type { DatabaseLocation } from './ownership.ts';

export type Restored = {
  /** Path of the replaced database; null if there was none. */
  replaced: string | null;
};

/** Row of the table `meta` of a central API's database that was restored and not started since. */
export const RESTORED_ROW = 'restored';

const JOURNAL = '-wal';
const INDEX = '-shm';

/**
 * Verifies the backup `from`, and replaces the database by a copy of it. Rejects if a process uses the database, with
 * ConfigError for a backup of another kind and for a database that was moved. If the process dies, the old database, the
 * new one or none is in place. If none is, the next start rejects the missing database, and a repeated restore completes
 * the work.
 */
export async function restoreDatabase(
  location: DatabaseLocation,
  from: string,
  nowMs: number,
): Promise<Restored> {
  const { address } = location;
  const moved = await moveNotice(location);
  if (moved !== null) throw new ConfigError(`nothing was restored, because ${moved}`);
  makeFolder(dirname(address));
  const lock = lockFile(location);
  const draft = `${address}.restoring`;
  try {
    await requireDatabaseFile({ ...location, address: from, variable: 'the backup' });
    verifyBackup(from);
    rmSync(draft, { force: true });
    copySqlite(from, draft);
    if (location.kind === 'central') markRestored(draft, nowMs);
    const damage = findAnyDamage(draft);
    if (damage !== null) throw new Error(`the copy of ${from} is damaged: ${damage}`);
    giveToOwnerOfFolder(draft);
    markCreated(location);
    const replaced = setAside(address, nowMs);
    renameSync(draft, address);
    syncFolder(dirname(address));
    return { replaced };
  } finally {
    for (const end of ['', JOURNAL, INDEX]) rmSync(`${draft}${end}`, { force: true });
    lock.close();
  }
}

/**
 * Marks a central API's database as restored. The next start must not charge for the time since the backup, in which renters may
 * not have been able to delete their pods.
 */
export function markRestored(path: string, nowMs: number): void {
  const database = openSqlite(path);
  database
    .prepare(
      `INSERT INTO meta (name, value) VALUES (:name, :value)
       ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
    )
    .run({ name: RESTORED_ROW, value: String(nowMs) });
  database.close();
}

/**
 * Renames the database and its journal. Both have their new names before the database loses its name, so that
 * no crash separates a database from the journal with its newest transactions.
 */
function setAside(address: string, nowMs: number): string | null {
  const present = ['', JOURNAL, INDEX].filter((end) => existsSync(`${address}${end}`));
  if (present.length === 0) return null;
  const target = freeName(`${address}.replaced-${fileTime(nowMs)}`);
  const folder = dirname(address);
  for (const end of present) linkSync(`${address}${end}`, `${target}${end}`);
  syncFolder(folder);
  for (const end of present) {
    rmSync(`${address}${end}`, { force: true });
    syncFolder(folder);
  }
  return target;
}

function freeName(wanted: string): string {
  let name = wanted;
  for (let more = 2; existsSync(name); more += 1) name = `${wanted}-${more}`;
  return name;
}
