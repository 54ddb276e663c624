import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ConfigError } from '#shared/runtime/config.ts';
import { openSqlite } from '#shared/runtime/sqlite.ts';
import { damageTable } from '../../test/fakes/faults/damage-file.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { openEvidenceStore } from '../store/evidence-store.ts';
import { runBackupCommand } from './backup-command.ts';
import { backUpFile, isBackupDue, listBackups, sha256Of, verifyBackup } from './database-backup.ts';
import { lockDatabaseFile, requireKeyFile } from './open-database.ts';
import { restoreDatabase } from './restore-database.ts';

/** 2026-11-27 07:00:00 UTC. */
const NOW_MS = 1_795_762_800_000;
const HOUR_MS = 3_600_000;

let home: string;
let path: string;
let folder: string;
const location = () => ({ address: path, variable: 'PLACE', kind: 'evidence' }) as const;

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'podwright-'));
  path = join(home, 'ledger.db');
  folder = join(home, 'database-backups');
  await (await openEvidenceStore(path)).destroy();
});
afterEach(() => rmSync(home, { recursive: true }));

const backUp = (nowMs = NOW_MS, keep = 3) => backUpFile({ path, folder, nowMs, keep });

/** Stores `value` as the only cycle, and returns the open connection, whose journal is not in the file yet. */
function note(value: string) {
  const database = openSqlite(path);
  database.exec('CREATE TABLE IF NOT EXISTS notes (text TEXT) STRICT; DELETE FROM notes');
  database.prepare('INSERT INTO notes (text) VALUES (:value)').run({ value });
  return database;
}

function noted(file = path): unknown {
  const database = openSqlite(file);
  const text = database.prepare('SELECT text FROM notes').get()?.['text'];
  database.close();
  return text;
}

it('copies a database while it is written to, with a checksum, for its owner only', () => {
  const writer = note('first');
  writer.exec("BEGIN IMMEDIATE; UPDATE notes SET text = 'not committed'");
  const backup = backUp();
  writer.exec('ROLLBACK');
  writer.close();
  expect(backup).toBe(join(folder, 'ledger-000001-20261127T070000Z.db'));
  expect(statSync(backup).mode & 0o777).toBe(0o600);
  expect(statSync(`${backup}.sha256`).mode & 0o777).toBe(0o600);
  expect(readFileSync(`${backup}.sha256`, 'utf8')).toBe(
    `${sha256Of(backup)}  ledger-000001-20261127T070000Z.db\n`,
  );
  copyFileSync(backup, join(home, 'copy.db'));
  expect(noted(join(home, 'copy.db'))).toBe('first');
  expect(() => verifyBackup(backup)).not.toThrow();
});

it('keeps the newest backups, also when the clock was set back, and removes remains of a crash', () => {
  for (const hour of [0, 1, -50, 3]) backUp(NOW_MS + hour * HOUR_MS);
  writeFileSync(join(folder, 'ledger-000009-20261127T070000Z.db.part'), '');
  writeFileSync(join(folder, 'ledger-000009-20261127T070000Z.db.sha256'), '');
  writeFileSync(join(folder, 'another.db'), '');
  backUp(NOW_MS + 4 * HOUR_MS);
  expect(listBackups(path, folder).map(({ number }) => number)).toEqual([5, 4, 3]);
  expect(readdirSync(folder).toSorted()).toEqual([
    'another.db',
    ...['ledger-000003-20261125T050000Z.db', 'ledger-000003-20261125T050000Z.db.sha256'],
    ...['ledger-000004-20261127T100000Z.db', 'ledger-000004-20261127T100000Z.db.sha256'],
    ...['ledger-000005-20261127T110000Z.db', 'ledger-000005-20261127T110000Z.db.sha256'],
    'ledger.lock',
  ]);
});

it('makes no backup of a damaged database, and keeps the earlier ones', () => {
  for (const hour of [0, 1, 2]) backUp(NOW_MS + hour * HOUR_MS);
  damageTable(path, 'evidence');
  expect(() => backUp(NOW_MS + 3 * HOUR_MS)).toThrow(`the database ${path} is damaged: `);
  expect(listBackups(path, folder).map(({ number }) => number)).toEqual([3, 2, 1]);
  expect(readdirSync(folder).filter((name) => name.includes('part'))).toEqual([]);
});

it('is due after the interval, and when the clock was set back by as much', () => {
  const newest = { path: '', number: 1, atMs: NOW_MS };
  expect(isBackupDue(undefined, HOUR_MS, NOW_MS)).toBe(true);
  expect(isBackupDue(newest, HOUR_MS, NOW_MS + HOUR_MS - 1)).toBe(false);
  expect(isBackupDue(newest, HOUR_MS, NOW_MS + HOUR_MS)).toBe(true);
  expect(isBackupDue(newest, HOUR_MS, NOW_MS - HOUR_MS)).toBe(true);
});

it('restores a backup over a damaged database and keeps the replaced one with its journal', async () => {
  note('kept').close();
  const backup = backUp();
  // A process that dies leaves its newest transactions in the journal.
  const writer = note('newer');
  copyFileSync(path, join(home, 'dead.db'));
  copyFileSync(`${path}-wal`, join(home, 'dead.db-wal'));
  writer.close();
  copyFileSync(join(home, 'dead.db'), path);
  copyFileSync(join(home, 'dead.db-wal'), `${path}-wal`);
  const { replaced } = await restoreDatabase(location(), backup, NOW_MS);
  expect(existsSync(`${path}-wal`)).toBe(false);
  expect(noted()).toBe('kept');
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(replaced).toBe(`${path}.replaced-20261127T070000Z`);
  expect(noted(String(replaced))).toBe('newer');
  // The replaced database can be restored in turn.
  damageTable(path, 'evidence');
  await expect(lockDatabaseFile(location())).rejects.toThrow(
    `Stop the process and restore the newest backup: npm run validator -- restore --ledger ${path}`,
  );
  const again = await restoreDatabase(location(), String(replaced), NOW_MS);
  expect(again.replaced).toBe(`${path}.replaced-20261127T070000Z-2`);
  expect(noted()).toBe('newer');
  (await lockDatabaseFile(location())).close();
});

it.each([0, 1])('refuses a database of which %i bytes are left', async (bytes) => {
  truncateSync(path, bytes);
  writeFileSync(`${path}-wal`, 'journal');
  await expect(lockDatabaseFile(location())).rejects.toThrow(
    `${path} is empty, although ${path}.created shows that it had contents. Restore a backup: `,
  );
  expect(readFileSync(`${path}-wal`, 'utf8')).toBe('journal');
  (await lockDatabaseFile(location(), { isNew: true })).close();
});

it('refuses a start without the key of a database that was created', () => {
  const key = join(home, 'hotkey.seed');
  expect(() => requireKeyFile(key, location(), { isNew: false })).toThrow(
    `the key ${key} is missing, although ${path}.created shows that this process has run`,
  );
  requireKeyFile(key, location(), { isNew: true });
  rmSync(`${path}.created`);
  requireKeyFile(key, location(), { isNew: false });
});

it('restores nothing while a process uses the database, and nothing damaged or foreign', async () => {
  note('present').close();
  const backup = backUp();
  const lock = await lockDatabaseFile(location());
  await expect(restoreDatabase(location(), backup, NOW_MS)).rejects.toThrow(
    `another process runs on the evidence store of a validator in ${path}`,
  );
  lock.close();
  const changed = join(home, 'changed.db');
  copyFileSync(backup, changed);
  writeFileSync(`${changed}.sha256`, `${'0'.repeat(64)}  changed.db\n`);
  await expect(restoreDatabase(location(), changed, NOW_MS)).rejects.toThrow(
    'differs from its checksum: use another backup',
  );
  rmSync(`${changed}.sha256`);
  damageTable(changed, 'evidence');
  await expect(restoreDatabase(location(), changed, NOW_MS)).rejects.toThrow('is damaged: ');
  const foreign = join(home, 'foreign.db');
  const other = openSqlite(foreign);
  other.exec('CREATE TABLE t (a INTEGER) STRICT');
  other.close();
  await expect(restoreDatabase(location(), foreign, NOW_MS)).rejects.toThrow(ConfigError);
  await expect(restoreDatabase(location(), join(home, 'none.db'), NOW_MS)).rejects.toThrow(
    'there is no evidence store',
  );
  expect(noted()).toBe('present');
  expect(readdirSync(home).filter((name) => /replaced|restoring/.test(name))).toEqual([]);
});

it('refuses a database that is missing although it existed, unless it is to be new', async () => {
  const backup = backUp();
  rmSync(path);
  const refused = lockDatabaseFile(location());
  await expect(refused).rejects.toThrow(/ledger.db is missing.*restore --ledger .*--fresh/);
  await expect(refused).rejects.toBeInstanceOf(ConfigError);
  (await lockDatabaseFile(location(), { isNew: true })).close();
  await restoreDatabase(location(), backup, NOW_MS);
  (await lockDatabaseFile(location())).close();
});

it('refuses a file that is no database, with the command that restores it', async () => {
  writeFileSync(path, 'A'.repeat(8_192));
  await expect(lockDatabaseFile(location())).rejects.toThrow(
    `If the file is damaged, restore it: npm run validator -- restore --ledger ${path}`,
  );
});

it('runs as commands, which refuse a server and name pg_dump', async () => {
  const printed: string[] = [];
  const run = (args: string[], address = path) =>
    runBackupCommand(
      { args, usual: { ...location(), address }, plan: { hours: 6, keep: 2 } },
      { clock: createManualClock(NOW_MS), print: (text) => void printed.push(text) },
    );
  note('one').close();
  await run(['backup']);
  note('two').close();
  await run(['restore']);
  expect(noted()).toBe('one');
  await run(['restore', '--list']);
  const backup = join(folder, 'ledger-000001-20261127T070000Z.db');
  expect(printed).toEqual([
    `${backup}\n`,
    `${path} is now a copy of ${backup}\n`,
    `the replaced database is kept in ${path}.replaced-20261127T070000Z\n`,
    `2026-11-27T07:00:00Z  ${backup}\n`,
  ]);
  await run(['backup', '--ledger', path, '--folder', join(home, 'more'), '--keep', '1']);
  expect(listBackups(path, join(home, 'more'))).toHaveLength(1);
  for (const address of ['postgres://me:hush@there/x', 'postgres://me@there/x?password=hush']) {
    const { message } = await run(['backup'], address).then(
      () => new Error('accepted'),
      (error: Error) => error,
    );
    expect(message).toContain(
      "pg_dump --format=custom --file=FILE --dbname='postgres://me@there/x'",
    );
    expect(message).toContain('~/.pgpass');
    expect(message).not.toContain('hush');
  }
  for (const args of [
    ['backup', 'x'],
    ['restore', 'a', 'b'],
    ['backup', '--keep', '0'],
  ]) {
    await expect(run(args)).rejects.toBeInstanceOf(ConfigError);
  }
  await expect(run(['restore'], join(home, 'other.db'))).rejects.toThrow('there is no backup of');
});
