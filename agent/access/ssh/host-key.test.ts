import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemRandom } from '#shared/runtime/random.ts';
import { publicKeyOf } from '#shared/signing/openssh-key.ts';
import { openHostKey } from './host-key.ts';

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-host-key-'));
  path = join(folder, 'ssh', 'host_key');
});
afterEach(() => rmSync(folder, { recursive: true }));

it('creates a private key that ssh-keygen reads, and returns the same key with every later call', () => {
  const pem = openHostKey(path, systemRandom);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  const line = execFileSync('ssh-keygen', ['-y', '-f', path], { encoding: 'utf8' }).trim();
  expect(line).toBe(`${publicKeyOf(pem)} podwright`);
  expect(openHostKey(path, systemRandom)).toBe(pem);
});

it('rejects a damaged file and one that other users can read', () => {
  openHostKey(path, systemRandom);
  chmodSync(path, 0o644);
  expect(() => openHostKey(path, systemRandom)).toThrow('host_key');
  chmodSync(path, 0o600);
  writeFileSync(path, 'damaged');
  expect(() => openHostKey(path, systemRandom)).toThrow('delete it');
});
