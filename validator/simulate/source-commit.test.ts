/** Tests the commit of a checkout, with git. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { runCommand } from '#shared/runtime/run-command.ts';
import { sourceCommit } from './source-commit.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'podwright-'));
});
afterEach(() => rmSync(root, { recursive: true }));

const git = (...args: string[]) =>
  runCommand('git', ['-C', root, '-c', 'user.name=a', '-c', 'user.email=a@b', ...args], {
    timeoutMs: 10_000,
    maxOutputBytes: 100_000,
  });

const commitOf = (folder: string) => sourceCommit(folder, process.env['PATH'] ?? '');

it('returns the commit of a checkout, and null for folders within it and beside it', async () => {
  const file = join(root, 'file');
  writeFileSync(file, 'first');
  expect(await commitOf(root)).toBeNull();
  await git('init', '--quiet');
  expect(await commitOf(root)).toBeNull();
  await git('add', 'file');
  await git('commit', '--quiet', '--message', 'first');
  const { stdout } = await git('rev-parse', 'HEAD');
  const commit = stdout.slice(0, 12);
  expect(await commitOf(root)).toBe(commit);
  writeFileSync(file, 'changed');
  expect(await commitOf(root)).toBe(`${commit}-dirty`);
  mkdirSync(join(root, 'within'));
  expect(await commitOf(join(root, 'within'))).toBeNull();
});

it('returns null without git', async () => {
  expect(await sourceCommit(root, '')).toBeNull();
});
