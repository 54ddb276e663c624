/** Which keys may command, in which roles and when: a signed list, so that keys can be changed in time (validator reference 3). */

import { readFileSync, statSync } from 'node:fs';
import { z } from 'zod';
import { canonicalJson } from './canonical-json.ts';
import { Hotkey, publicKeyOf } from './hotkey.ts';
import { ROLES, type TrustedKey } from './request-verifier.ts';
import { type LocalSigner, signatureFromHex, toHex, verifySr25519 } from './sr25519.ts';

/** So that a signature can mean nothing else. */
const SIGNED_AS = 'podwright-key-set-v1\n';
const MAX_KEYS = 100;
const MAX_REVOKED = 1_000;
/** A set changes who may command: only who may command already signs one. */
const SIGNING_ROLE = 'validator-control';

const EpochMs = z.int().min(0);

const Key = z
  .strictObject({
    key_id: z.string().regex(/^[A-Za-z0-9._-]{1,64}$/),
    ss58: Hotkey,
    roles: z.array(z.enum(ROLES)).min(1),
    /** Milliseconds since the epoch: the first and the last in which it counts. Sets of old and new keys overlap. */
    not_before: EpochMs,
    not_after: EpochMs,
  })
  .refine((key) => key.not_before <= key.not_after, 'not_before lies behind not_after');

export const KeySet = z
  .strictObject({
    v: z.literal(1),
    kind: z.literal('key-set'),
    /** Higher in every later set. */
    sequence: z.int().min(1),
    keys: z.array(Key).min(1).max(MAX_KEYS),
    /** Count no more, whoever else names them. */
    revoked: z.array(Hotkey).max(MAX_REVOKED),
  })
  .refine(
    ({ keys }) => new Set(keys.map(({ ss58 }) => ss58)).size === keys.length,
    'A key stands there twice',
  );
export type KeySet = z.output<typeof KeySet>;

export const SignedKeySet = z.strictObject({
  key_set: KeySet,
  /** Who signed it. */
  ss58: Hotkey,
  signature: z.string(),
});
export type SignedKeySet = z.output<typeof SignedKeySet>;

/** The set as `signer` vouches for it. */
export function signKeySet(keySet: KeySet, signer: LocalSigner): SignedKeySet {
  return { key_set: keySet, ss58: signer.hotkey, signature: toHex(signer.sign(messageOf(keySet))) };
}

/**
 * The keys to trust where `roots` are trusted without a set: those of the set with their windows, and the roots that
 * it does not name, all but the revoked. Throws Error for a set that no root with the role to command has signed.
 */
export function trustedKeys(roots: readonly TrustedKey[], signed: SignedKeySet): TrustedKey[] {
  const root = roots.find(({ hotkey }) => hotkey === signed.ss58);
  if (root === undefined || !root.roles.includes(SIGNING_ROLE)) {
    throw new Error(`signed by ${signed.ss58}, which is no key in the role ${SIGNING_ROLE}`);
  }
  const signature = signatureFromHex(signed.signature);
  const publicKey = publicKeyOf(signed.ss58);
  const isGood =
    signature !== null &&
    publicKey !== null &&
    verifySr25519(messageOf(signed.key_set), signature, publicKey);
  if (!isGood) throw new Error(`the signature is not that of ${signed.ss58}`);
  const { keys, revoked } = signed.key_set;
  const listed = keys.map((key) => ({
    hotkey: key.ss58,
    keyId: key.key_id,
    roles: key.roles,
    notBeforeMs: key.not_before,
    notAfterMs: key.not_after,
  }));
  const named = new Set(listed.map(({ hotkey }) => hotkey));
  return [...listed, ...roots.filter(({ hotkey }) => !named.has(hotkey))].filter(
    ({ hotkey }) => !revoked.includes(hotkey),
  );
}

function messageOf(keySet: KeySet): Uint8Array {
  return new TextEncoder().encode(SIGNED_AS + canonicalJson(keySet));
}

const MAX_BYTES = 256 * 1024;

/** Throws Error that says what is wrong with the file. */
export function readSignedKeySet(path: string): SignedKeySet {
  const file = statSync(path);
  // A pipe would keep the reader for ever.
  if (!file.isFile()) throw new Error('not a file');
  if (file.size > MAX_BYTES) throw new Error(`larger than ${MAX_BYTES} bytes`);
  const parsed = SignedKeySet.safeParse(JSON.parse(readFileSync(path, 'utf8')));
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(
    ({ path: at, message }) => `${at.join('.') || 'the whole'}: ${message}`,
  );
  throw new Error(problems.join('; '));
}
