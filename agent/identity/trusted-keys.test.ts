import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { ConfigError } from '#shared/runtime/config.ts';
import { KeySet, signKeySet } from '#shared/signing/key-set.ts';
import type { TrustedKey } from '#shared/signing/request-verifier.ts';
import { createSigner } from '#shared/signing/sr25519.ts';
import { trustedKeysFrom } from './trusted-keys.ts';

const folder = mkdtempSync(join(tmpdir(), 'podwright-key-set-'));
afterAll(() => rmSync(folder, { recursive: true }));

const root = createSigner(new Uint8Array(32).fill(1));
const next = createSigner(new Uint8Array(32).fill(2));
const ROOTS: TrustedKey[] = [{ hotkey: root.hotkey, roles: ['validator-control'] }];
const SET = KeySet.parse({
  v: 1,
  kind: 'key-set',
  sequence: 1,
  keys: [
    { key_id: 'n', ss58: next.hotkey, roles: ['validator-control'], not_before: 5, not_after: 9 },
  ],
  revoked: [root.hotkey],
});

function fileOf(content: unknown): string {
  const path = join(folder, 'key-set.json');
  writeFileSync(path, JSON.stringify(content));
  return path;
}

it('returns the keys of the set, or the configured keys without a file', () => {
  expect(trustedKeysFrom(ROOTS, fileOf(signKeySet(SET, root)))).toEqual([
    {
      hotkey: next.hotkey,
      keyId: 'n',
      roles: ['validator-control'],
      notBeforeMs: 5,
      notAfterMs: 9,
    },
  ]);
  expect(trustedKeysFrom(ROOTS, undefined)).toBe(ROOTS);
});

it.each<[string, () => string, RegExp]>([
  ['an unsigned key set', () => fileOf(SET), /key_set/],
  [
    'a key set signed by an untrusted key',
    () => fileOf(signKeySet(SET, next)),
    /not a trusted key with the role/,
  ],
  ['a folder', () => folder, /not a file/],
  ['nothing', () => join(folder, 'nowhere'), /ENOENT/],
])('rejects %s and names the variable', (_, path, message) => {
  const reading = () => trustedKeysFrom(ROOTS, path());
  expect(reading).toThrow(ConfigError);
  expect(reading).toThrow(/^AGENT_KEY_SET \//);
  expect(reading).toThrow(message);
});
