import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { lockExclusively, openSqlite } from './sqlite.ts';

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
