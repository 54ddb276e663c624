import { linkSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type RunCommand, runCommand } from '#shared/runtime/run-command.ts';
import { createFolderBytes } from './folder-size.ts';

const MIB = 2 ** 20;
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-bytes-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const folderBytes = createFolderBytes(runCommand);

it('counts the files of all folders once, and nothing outside them', async () => {
  const [one, two, outside] = ['one', 'two', 'outside'].map((name) => join(folder, name));
  if (one === undefined || two === undefined || outside === undefined) throw new Error('no folder');
  for (const path of [one, two, outside]) mkdirSync(path);
  writeFileSync(join(one, 'a'), Buffer.alloc(2 * MIB, 1));
  writeFileSync(join(outside, 'b'), Buffer.alloc(8 * MIB, 1));
  linkSync(join(one, 'a'), join(two, 'a'));
  symlinkSync(outside, join(two, 'out'));
  const bytes = await folderBytes([one, two]);
  expect(bytes).toBeGreaterThanOrEqual(2 * MIB);
  expect(bytes).toBeLessThan(3 * MIB);
  expect(await folderBytes([])).toBe(0);
});

it('returns null if the folders cannot be measured', async () => {
  expect(await folderBytes([join(folder, 'missing')])).toBeNull();
  const slow: RunCommand = async () => {
    return { exitCode: null, stdout: '12\ttotal\n', stderr: '', ended: 'timeout' };
  };
  expect(await createFolderBytes(slow)([folder])).toBeNull();
});

it('accepts the total of a walk during which files vanished', async () => {
  const stdout = `3\t${folder}/new\nline\n7\ttotal\n`;
  const walk: RunCommand = async () => ({ exitCode: 1, stdout, stderr: 'gone', ended: null });
  expect(await createFolderBytes(walk)([folder])).toBe(7);
});
