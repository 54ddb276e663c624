/** Checks that vitest.config.ts runs every test file: on SQLite in one project, or on PostgreSQL, or on both. */
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import config from '../../vitest.config.ts';

const ROOT = join(import.meta.dirname, '../..');

function filesOf(name: string): Set<string> {
  const project = config.test?.projects?.find(
    (each) => typeof each === 'object' && 'test' in each && each.test?.name === name,
  );
  if (typeof project !== 'object' || !('test' in project)) throw new Error(`no project ${name}`);
  const { include = [], exclude = [] } = project.test ?? {};
  return new Set(globSync(include, { cwd: ROOT, exclude }));
}

/** Projects without a database or with SQLite, and those with PostgreSQL. */
const ON_SQLITE = ['main', 'long'].map(filesOf);
const ON_POSTGRES = ['postgres', 'long-postgres'].map(filesOf);

const count = (path: string, projects: readonly Set<string>[]) =>
  projects.filter((files) => files.has(path)).length;

it('runs every test file, and none twice on one database', () => {
  const files = globSync('**/*.test.ts', { cwd: ROOT, exclude: ['node_modules', 'var'] });
  expect(files.length).toBeGreaterThan(500);
  const wrong = files.flatMap((path) => {
    const onSqlite = count(path, ON_SQLITE);
    const onPostgres = count(path, ON_POSTGRES);
    return onSqlite + onPostgres === 0 || onSqlite > 1 || onPostgres > 1
      ? [`${path}: in ${onSqlite} projects on SQLite and ${onPostgres} on PostgreSQL`]
      : [];
  });
  expect(wrong).toEqual([]);
});
