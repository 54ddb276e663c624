import { mkdtempSync, readdirSync, readlinkSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { damageHeader, damageTable } from '../../test/fakes/faults/damage-file.ts';
import {
  findAnyDamage,
  findDamage,
  lockExclusively,
  openSqlite,
  TEMPORARY_FILE,
} from './sqlite.ts';

it('creates its files without access for other users', () => {
  const home = mkdtempSync(join(tmpdir(), 'podwright-'));
  const folder = join(home, 'store');
  const database = openSqlite(join(folder, 'a.db'));
  database.exec('CREATE TABLE t (a INTEGER) STRICT');
  const lock = lockExclusively(join(folder, 'a.lock'));
  const modeOf = (path: string) => statSync(path).mode & 0o777;
  const names = readdirSync(folder);
  expect(names).toEqual(expect.arrayContaining(['a.db', 'a.db-wal', 'a.db-shm', 'a.lock']));
  expect(modeOf(folder)).toBe(0o700);
  for (const name of names) expect([name, modeOf(join(folder, name))]).toEqual([name, 0o600]);
  lock.close();
  database.close();
  rmSync(home, { recursive: true });
});

it('finds damage in a table and in the header, and none in a database that is written to', () => {
  const home = mkdtempSync(join(tmpdir(), 'podwright-'));
  const path = join(home, 'a.db');
  const database = openSqlite(path);
  database.exec('CREATE TABLE t (a TEXT) STRICT; CREATE TABLE u (a TEXT) STRICT');
  const fill = database.prepare('INSERT INTO t (a) VALUES (:a)');
  for (let n = 0; n < 1_000; n += 1) fill.run({ a: 'x'.repeat(100) });
  database.exec('BEGIN IMMEDIATE; DELETE FROM t WHERE rowid < 500');
  expect(findDamage(path)).toBeNull();
  expect(findAnyDamage(path)).toBeNull();
  database.exec('COMMIT');
  database.close();
  damageTable(path, 't');
  expect(findDamage(path)).toMatch(/Tree \d+ page \d+|malformed/);
  expect(findAnyDamage(path)).not.toBeNull();
  damageHeader(path);
  expect(findDamage(path)).toMatch(/not a database/);
  expect(findAnyDamage(path)).toMatch(/not a database/);
  rmSync(home, { recursive: true });
});

/** Names of the open files of this process that no folder lists. */
function namelessFiles(): string[] {
  const open = readdirSync('/proc/self/fd').map((file) => {
    try {
      return readlinkSync(`/proc/self/fd/${file}`);
    } catch {
      // The file that lists the open files is closed again.
      return '';
    }
  });
  return open.filter((name) => name.endsWith(' (deleted)'));
}

it('stores a temporary database outside of memory, in a file that no folder lists', () => {
  const files = namelessFiles();
  const database = openSqlite(TEMPORARY_FILE);
  expect(namelessFiles().length).toBe(files.length + 1);
  database.exec('CREATE TABLE t (a BLOB) STRICT');
  const fill = database.prepare('INSERT INTO t (a) VALUES (zeroblob(1000000))');
  const before = process.memoryUsage.rss();
  for (let n = 0; n < 300; n += 1) fill.run();
  expect(process.memoryUsage.rss() - before).toBeLessThan(150_000_000);
  database.exec('BEGIN IMMEDIATE; INSERT INTO t (a) VALUES (zeroblob(9)); ROLLBACK');
  expect(database.prepare('SELECT sum(length(a)) AS bytes FROM t').get()).toEqual({
    bytes: 300_000_000,
  });
  database.close();
  expect(namelessFiles()).toEqual(files);
});
