import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemRandom } from '#shared/runtime/random.ts';
import { openSecretKey } from './secret-key.ts';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'podwright-'));
});
afterEach(() => rmSync(home, { recursive: true }));

it('creates one key, readable by its owner only, and reuses it', () => {
  const key = openSecretKey(join(home, 'new'), systemRandom);
  expect(key).toHaveLength(32);
  expect(openSecretKey(join(home, 'new'), systemRandom)).toEqual(key);
  expect(readdirSync(join(home, 'new'))).toEqual(['secret.key']);
  expect(statSync(join(home, 'new', 'secret.key')).mode & 0o777).toBe(0o600);
});

it('rejects a key that others can read, and an invalid file', () => {
  const path = join(home, 'secret.key');
  openSecretKey(home, systemRandom);
  chmodSync(path, 0o640);
  expect(() => openSecretKey(home, systemRandom)).toThrow(/chmod 600/);
  chmodSync(path, 0o600);
  writeFileSync(path, 'short');
  expect(() => openSecretKey(home, systemRandom)).toThrow(/32 random bytes/);
  // A file system may fill a file that it did not write before a power failure with zeros.
  writeFileSync(path, new Uint8Array(32));
  expect(() => openSecretKey(home, systemRandom)).toThrow(/32 random bytes/);
});
