import { describe, expect, it } from 'vitest';
import { partsToSign, signatureHeaders } from '../../test/fakes/agents/sign-request.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { KeySet, signKeySet, trustedKeys } from './key-set.ts';
import {
  type AuthFailure,
  createReplayCache,
  createRequestVerifier,
  type TrustedKey,
} from './request-verifier.ts';
import { createSigner, verifySr25519 } from './sr25519.ts';

const signer = (byte: number) => createSigner(new Uint8Array(32).fill(byte));
const [oldKey, newKey, reader, stranger] = [signer(1), signer(2), signer(3), signer(4)];
const START_MS = 1_800_000_000_000;
const ROOTS: TrustedKey[] = [
  { hotkey: oldKey.hotkey, roles: ['validator-control'] },
  { hotkey: reader.hotkey, roles: ['validator-read'] },
];

/**
 * Returns a key set in which the old key is valid until 1 s after the start, and the new one for 2 s from the start on.
 */
function rotation(change: object = {}): KeySet {
  const key = (key_id: string, ss58: string, not_before: number, not_after: number) => {
    return { key_id, ss58, roles: ['validator-control'], not_before, not_after };
  };
  return KeySet.parse({
    v: 1,
    kind: 'key-set',
    sequence: 1,
    keys: [
      key('old', oldKey.hotkey, 0, START_MS + 1_000),
      key('new', newKey.hotkey, START_MS, START_MS + 2_000),
    ],
    revoked: [],
    ...change,
  });
}

describe('a signed key set', () => {
  it('accepts both keys while their windows overlap, then only the new key, then neither key', async () => {
    const keys = trustedKeys(ROOTS, signKeySet(rotation(), oldKey));
    const clock = createManualClock(START_MS - 10_000);
    const failures: AuthFailure[] = [];
    const verifier = createRequestVerifier({
      clock,
      audience: 'us',
      keys,
      replay: createReplayCache(60_000),
      verify: verifySr25519,
      onFailure: (reason) => failures.push(reason),
    });
    const accepts = (by: typeof oldKey) => {
      const request = { method: 'GET', url: '/x', body: '', audience: 'us' };
      const parts = partsToSign(by, { ...request, timestampMs: clock.now() });
      try {
        const sent = { method: 'GET', url: '/x', headers: signatureHeaders(by, parts) };
        const pending = verifier.checkHeaders(sent, ['validator-control']);
        return verifier.checkBody(pending, new Uint8Array(0)).signer === by.hotkey;
      } catch {
        return false;
      }
    };
    const accepted: [number, boolean, boolean][] = [];
    for (const at of [-1, 0, 1_000, 1_001, 2_000, 2_001]) {
      await clock.advance(START_MS + at - clock.now());
      accepted.push([at, accepts(oldKey), accepts(newKey)]);
    }
    expect(accepted).toEqual([
      [-1, true, false],
      [0, true, true],
      [1_000, true, true],
      [1_001, false, true],
      [2_000, false, true],
      [2_001, false, false],
    ]);
    expect(new Set(failures)).toEqual(new Set(['key_window']));
    expect(accepts(reader)).toBe(false);
  });

  it('trusts unlisted root keys, unless it revokes them', () => {
    const hotkeys = (keys: TrustedKey[]) => keys.map(({ hotkey }) => hotkey);
    const rotated = trustedKeys(ROOTS, signKeySet(rotation(), oldKey));
    expect(hotkeys(rotated)).toEqual([oldKey.hotkey, newKey.hotkey, reader.hotkey]);
    const revoked = rotation({ revoked: [oldKey.hotkey, reader.hotkey] });
    expect(hotkeys(trustedKeys(ROOTS, signKeySet(revoked, oldKey)))).toEqual([newKey.hotkey]);
  });

  it.each<[string, () => ReturnType<typeof signKeySet>, RegExp]>([
    [
      'by an unknown key',
      () => signKeySet(rotation(), stranger),
      /not a trusted key with the role/,
    ],
    ['by a read-only key', () => signKeySet(rotation(), reader), /not a trusted key with the role/],
    ['by itself', () => signKeySet(rotation(), newKey), /not a trusted key with the role/],
    [
      'and then changed',
      () => ({ ...signKeySet(rotation(), oldKey), key_set: rotation({ sequence: 2 }) }),
      /has not made this signature/,
    ],
    [
      'by another key in the name of a trusted key',
      () => ({ ...signKeySet(rotation(), stranger), ss58: oldKey.hotkey }),
      /has not made this signature/,
    ],
  ])('is rejected when signed %s', (_, signed, message) => {
    expect(() => trustedKeys(ROOTS, signed())).toThrow(message);
  });

  it.each<[string, object]>([
    ['no key', { keys: [] }],
    ['a key twice', { keys: [rotation().keys[0], rotation().keys[0]] }],
    [
      'a window that ends before it begins',
      { keys: [{ ...rotation().keys[0], not_before: START_MS + 2_000 }] },
    ],
    ['an unknown role', { keys: [{ ...rotation().keys[0], roles: ['root'] }] }],
    ['a key in hex', { keys: [{ ...rotation().keys[0], ss58: `0x${'ab'.repeat(32)}` }] }],
    ['another kind', { kind: 'image-digest' }],
  ])('does not parse with %s', (_, change) => {
    expect(KeySet.safeParse({ ...rotation(), ...change }).success).toBe(false);
  });
});
