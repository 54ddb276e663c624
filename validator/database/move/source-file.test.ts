import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openSqlite } from '#shared/runtime/sqlite.ts';
import { openSourceFile, type SourceFile } from './source-file.ts';

const BATCH_ROWS = 5_000;
const ROWS = 12_000;

let folder: string;
let file: SourceFile;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-move-'));
  const path = join(folder, 'small.db');
  const database = openSqlite(path);
  database.exec(`
    CREATE TABLE a_orders (id INTEGER PRIMARY KEY, customer TEXT NOT NULL REFERENCES z_customers (id)) STRICT;
    CREATE TABLE z_customers (id TEXT PRIMARY KEY, referrer TEXT REFERENCES z_customers (id)) STRICT;
    CREATE TABLE lines (name TEXT, number INTEGER, weight REAL, photo BLOB, note TEXT,
      order_id INTEGER REFERENCES a_orders (id), PRIMARY KEY (number, name)) STRICT;
    CREATE TABLE counted (seq INTEGER PRIMARY KEY AUTOINCREMENT) STRICT;
    INSERT INTO counted VALUES (7), (9); DELETE FROM counted WHERE seq = 9;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${ROWS})
    INSERT INTO lines (name, number, weight) SELECT CASE i % 2 WHEN 0 THEN 'ü' ELSE 'Z' END, i / 2, i / 4.0 FROM n;
  `);
  database.close();
  file = openSourceFile(path);
});
afterEach(() => {
  file.close();
  rmSync(folder, { recursive: true });
});

const tableNamed = (name: string) => {
  const table = file.tables().find((each) => each.name === name);
  if (table === undefined) throw new Error(`no table ${name}`);
  return table;
};

it('lists tables after those that they reference, with types and keys', () => {
  expect(file.tables().map(({ name }) => name)).toEqual([
    'counted',
    'z_customers',
    'a_orders',
    'lines',
  ]);
  expect(tableNamed('lines')).toMatchObject({
    columns: [{ type: 'TEXT' }, { type: 'INTEGER' }, { type: 'REAL' }, { type: 'BLOB' }, {}, {}],
    key: ['number', 'name'],
  });
});

it('returns every row once in batches, and continues after a key', () => {
  const lines = tableNamed('lines');
  const batches = [...file.batches(lines, null)];
  expect(batches.map(({ rows }) => rows.length)).toEqual([
    BATCH_ROWS,
    BATCH_ROWS,
    ROWS - 2 * BATCH_ROWS,
  ]);
  expect(file.count(lines)).toBe(ROWS);
  const [first, ...rest] = batches;
  const continued = [...file.batches(lines, first?.last ?? null)];
  expect(continued).toEqual(rest);
  expect(continued[0]?.rows[0]).toEqual(['ü', 2500n, 1250, null, null, null]);
});

it('ends a batch before its rows need too much memory', () => {
  const path = join(folder, 'small.db');
  const database = openSqlite(path);
  database.exec('DELETE FROM lines WHERE number > 3; UPDATE lines SET photo = zeroblob(3000000)');
  database.close();
  expect([...file.batches(tableNamed('lines'), null)].map(({ rows }) => rows.length)).toEqual([
    2, 2, 2, 1,
  ]);
});

it('returns the highest number of an auto-incrementing key, also after its row was deleted', () => {
  expect(file.sequences().get('counted')).toBe(9);
});

it('finds a reference without a row', () => {
  expect(file.brokenReference()).toBe(null);
  const database = openSqlite(join(folder, 'small.db'));
  database.exec("PRAGMA foreign_keys = OFF; INSERT INTO a_orders VALUES (1, 'nobody')");
  database.close();
  expect(file.brokenReference()).toBe('a row of a_orders references a missing row of z_customers');
});
