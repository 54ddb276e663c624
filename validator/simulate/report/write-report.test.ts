import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ConfigError } from '#shared/runtime/config.ts';
import { createOutFolder } from './write-report.ts';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'simulate-out-'));
});
afterEach(() => rmSync(home, { recursive: true }));

it('creates the folder, and accepts one that exists', () => {
  const folder = join(home, 'a', 'b');
  createOutFolder(folder);
  createOutFolder(folder);
  expect(statSync(folder).isDirectory()).toBe(true);
});

it.each([
  ['a file', 'file'],
  ['a path in a file', 'file/folder'],
])('refuses %s with a remedy', (_, name) => {
  writeFileSync(join(home, 'file'), '');
  const path = join(home, name);
  expect(() => createOutFolder(path)).toThrow(ConfigError);
  expect(() => createOutFolder(path)).toThrow(
    `--out: ${path} is a file, or in a file. Name a folder; it is created if it is missing.`,
  );
});
