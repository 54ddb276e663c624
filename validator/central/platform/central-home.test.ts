import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ConfigError } from '#shared/runtime/config.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { centralSecret } from './central-home.ts';

it('creates the secret once with access for its owner only, and rejects a changed file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-'));
  const file = join(folder, 'home', 'central.secret');
  const open = () => centralSecret(file, systemRandom);
  const secret = open();
  expect(secret).toHaveLength(32);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(open()).toEqual(secret);
  chmodSync(file, 0o644);
  expect(open).toThrow(`${file} may be read by others (mode 644): chmod 600`);
  chmodSync(file, 0o600);
  writeFileSync(file, 'x');
  expect(open).toThrow(/has 1 of at least 32 bytes/);
  expect(open).toThrow(ConfigError);
  writeFileSync(file, new Uint8Array(32));
  expect(open).toThrow(`${file} has no random bytes: restore the original file`);
  rmSync(folder, { recursive: true });
});
