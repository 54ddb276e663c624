import { expect, it } from 'vitest';
import { openDatabase } from './database.ts';
import { problemOfStore } from './store-probe.ts';

it('finds a store that takes and gives, one that is closed, and lives with a full one', () => {
  const database = openDatabase(':memory:');
  expect(problemOfStore(database, 1)).toBeNull();
  expect(problemOfStore(database, 2)).toBeNull();
  const pages = Number(database.prepare('PRAGMA page_count').get()?.['page_count']);
  database.exec(`PRAGMA max_page_count = ${pages}`);
  const fill = database.prepare('INSERT INTO meta (name, value) VALUES (:name, :value)');
  expect(() => fill.run({ name: 'large', value: 'x'.repeat(100_000) })).toThrow(/full/);
  expect(problemOfStore(database, 3)).toBeNull();
  database.close();
  expect(problemOfStore(database, 4)).toMatch(/not open/);
});
