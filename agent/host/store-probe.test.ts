import { expect, it } from 'vitest';
import { openDatabase } from '../database/database.ts';
import { storeProblem } from './store-probe.ts';

it('accepts a working store and a full disk, and reports any other error', () => {
  const database = openDatabase(':memory:');
  const rows = () => database.prepare('SELECT count(*) AS rows FROM meta').get()?.['rows'];
  const pages = Number(database.prepare('PRAGMA page_count').get()?.['page_count']);
  database.exec(`PRAGMA max_page_count = ${pages}`);
  const fill = database.prepare('INSERT INTO meta (name, value) VALUES (:name, :value)');
  const fillUp = () => {
    for (let at = 0; ; at += 1) fill.run({ name: String(at), value: '' });
  };
  expect(fillUp).toThrow(/full/);
  const full = rows();
  expect(storeProblem(database, 1)).toBeNull();
  expect(rows()).toBe(full);
  database.exec('DELETE FROM meta');
  expect(storeProblem(database, 2)).toBeNull();
  expect(rows()).toBe(1);
  database.close();
  expect(storeProblem(database, 3)).toMatch(/not open/);
});
