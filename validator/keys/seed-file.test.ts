import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { systemRandom } from '#shared/runtime/random.ts';
import { publicKeyOf } from '#shared/signing/hotkey.ts';
import { createSigner, verifySr25519 } from '#shared/signing/sr25519.ts';
import { readOrCreateSeedFile, readSeedFile } from './seed-file.ts';
import { keyringSigner } from './signer.ts';

const folder = mkdtempSync(join(tmpdir(), 'podwright-keys-'));
afterAll(() => rmSync(folder, { recursive: true }));

it('makes a private seed once and reads the same one ever after', () => {
  const path = join(folder, 'deep', 'hotkey.seed');
  const seed = readOrCreateSeedFile(path, systemRandom);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readOrCreateSeedFile(path, systemRandom)).toEqual(seed);
});

it('refuses a file that others may read, or that holds no seed', () => {
  const open = join(folder, 'open.seed');
  writeFileSync(open, '00'.repeat(32));
  chmodSync(open, 0o644);
  expect(() => readSeedFile(open)).toThrow(/chmod 600/);
  const bad = join(folder, 'bad.seed');
  writeFileSync(bad, 'not a seed', { mode: 0o600 });
  expect(() => readSeedFile(bad)).toThrow(/64 hex digits/);
});

it('signs through the chain library what our own verifier accepts', async () => {
  const seed = systemRandom.bytes(32);
  const signer = await keyringSigner(seed);
  expect(signer.hotkey).toBe(createSigner(seed).hotkey);
  const message = new TextEncoder().encode('message');
  const publicKey = publicKeyOf(signer.hotkey) ?? new Uint8Array(32);
  expect(verifySr25519(message, signer.sign(message), publicKey)).toBe(true);
});
