import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { makeFolder } from './files.ts';

it('creates missing folders with mode 0700 and does not change existing ones', () => {
  const home = mkdtempSync(join(tmpdir(), 'podwright-'));
  try {
    for (const path of ['a/b/c', 'a/b/c', 'a/d']) makeFolder(join(home, path));
    const modes = ['a', 'a/b', 'a/b/c', 'a/d'].map((path) => statSync(join(home, path)).mode);
    expect(modes.map((mode) => mode & 0o777)).toEqual([0o700, 0o700, 0o700, 0o700]);
  } finally {
    rmSync(home, { recursive: true });
  }
});

it('throws a system error if a folder cannot be created', () => {
  expect(() => makeFolder('/proc/nope/here')).toThrow(/ENOENT.*mkdir '\/proc\/nope'/);
});
