import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createKeyFolders } from './key-folders.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'podwright-keys-'));
});
afterEach(() => rmSync(root, { recursive: true }));

it('replaces the key file but not its folder; only the owner may write the file', () => {
  const folders = createKeyFolders(root);
  const folder = folders.write('a', ['ssh-ed25519 one', 'ssh-ed25519 two']);
  const file = join(folder, 'authorized_keys');
  expect(readFileSync(file, 'utf8')).toBe('ssh-ed25519 one\nssh-ed25519 two\n');
  expect([statSync(folder).mode & 0o777, statSync(file).mode & 0o777]).toEqual([0o755, 0o644]);
  const before = { folder: statSync(folder).ino, file: statSync(file).ino };
  folders.write('a', ['ssh-ed25519 one', 'ssh-ed25519 two']);
  expect(statSync(file).ino).toBe(before.file);
  folders.write('a', ['ssh-ed25519 three']);
  expect(statSync(folder).ino).toBe(before.folder);
  expect(statSync(file).ino).not.toBe(before.file);
  expect(readdirSync(folder)).toEqual(['authorized_keys']);
});

it('removes all folders except those of the given pods', () => {
  const folders = createKeyFolders(root);
  folders.write('a', []);
  folders.write('b', []);
  folders.retain(new Set(['b']));
  expect(readdirSync(root)).toEqual(['b']);
});
