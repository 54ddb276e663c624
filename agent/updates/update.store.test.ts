import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type DatabaseSync, openSqlite } from '#shared/runtime/sqlite.ts';
import { digestOf } from '../../test/fixtures/update-manifest.ts';
import { openDatabase, SCHEMA, STORE_FILE, schemaOf } from '../database/database.ts';
import { NO_UPDATE } from './update.state.ts';
import { createStoreCopy, createUpdateStore } from './update.store.ts';

const TARGET = { sequence: 7, digest: digestOf('b') };
const ROW = { ...NO_UPDATE, sequence: 7 };

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-store-'));
  path = join(folder, STORE_FILE);
  withStore(() => undefined);
});
afterEach(() => rmSync(folder, { recursive: true }));

function withStore<T>(work: (database: DatabaseSync) => T): T {
  const database = openDatabase(path);
  const found = work(database);
  database.close();
  return found;
}

/** Migrates the store as another version would. */
function migrateTo(schema: number): void {
  const database = openSqlite(path);
  database.exec(`UPDATE meta SET value = '${schema}' WHERE name = 'schema'`);
  createUpdateStore(database).put(ROW);
  database.close();
}

it('reads the row of a version without key sets', () => {
  const { trust, ...old } = ROW;
  const found = withStore((database) => {
    const insert = database.prepare('INSERT INTO agent_update (id, row_json) VALUES (1, ?)');
    insert.run(JSON.stringify(old));
    return createUpdateStore(database).get();
  });
  expect([found, trust]).toEqual([ROW, null]);
});

it('restores a store that the old version cannot read, except the row of the update', () => {
  const copy = createStoreCopy(path, SCHEMA);
  copy.make(TARGET);
  const [name = ''] = readdirSync(folder).filter((each) => each !== STORE_FILE);
  expect(statSync(join(folder, name)).mode & 0o077).toBe(0);
  migrateTo(SCHEMA + 1);
  expect(() => withStore(schemaOf)).toThrow(/newer than this agent/);
  // The switcher repeats this after a kill, when the new version may already have written to the store.
  copy.make(TARGET);
  copy.restoreIfNewer(TARGET);
  copy.restoreIfNewer(TARGET);
  expect(withStore((database) => [schemaOf(database), createUpdateStore(database).get()])).toEqual([
    SCHEMA,
    ROW,
  ]);
  expect(readdirSync(folder)).toEqual([STORE_FILE]);
});

it('leaves a store unchanged that the old version can read', () => {
  const copy = createStoreCopy(path, SCHEMA);
  copy.make(TARGET);
  migrateTo(SCHEMA);
  copy.restoreIfNewer(TARGET);
  expect(withStore((database) => createUpdateStore(database).get())).toEqual(ROW);
  expect(readdirSync(folder)).toEqual([STORE_FILE]);
});

it('creates a separate copy of the store for each update', () => {
  const copy = createStoreCopy(path, SCHEMA);
  copy.make({ ...TARGET, sequence: 6 });
  migrateTo(SCHEMA);
  copy.make(TARGET);
  migrateTo(SCHEMA + 1);
  copy.restoreIfNewer(TARGET);
  expect(withStore((database) => createUpdateStore(database).get())).toEqual(ROW);
});
