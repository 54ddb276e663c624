/** Signed key sets: which keys may sign requests, in which roles and when, so that keys can be rotated (README.md). */

import { readFileSync, statSync } from 'node:fs';
import { z } from 'zod';
import { canonicalJson } from './canonical-json.ts';
import { Hotkey, publicKeyOf } from './hotkey.ts';
import { ROLES, type TrustedKey } from './request-verifier.ts';
import { type LocalSigner, signatureFromHex, toHex, verifySr25519 } from './sr25519.ts';

/** Prefix of the signed text, so that the signature cannot be used for another purpose. */
const SIGNED_AS = 'podwright-key-set-v1\n';
const MAX_KEYS = 100;
const MAX_REVOKED = 1_000;
/** Only a key that may control agents may sign a set. */
const SIGNING_ROLE = 'validator-control';

const EpochMs = z.int().min(0);

/** Id of a key in a key set, or an ss58. */
export const KeyId = z.string().regex(/^[A-Za-z0-9._-]{1,64}$/, 'Not the id of a key');

const Key = z
  .strictObject({
    key_id: KeyId,
    ss58: Hotkey,
    roles: z.array(z.enum(ROLES)).min(1),
    /** First and last millisecond of validity. Windows of old and new keys overlap during a rotation. */
    not_before: EpochMs,
    not_after: EpochMs,
  })
  .refine((key) => key.not_before <= key.not_after, 'not_before is after not_after');

export const KeySet = z
  .strictObject({
    v: z.literal(1),
    kind: z.literal('key-set'),
    /** Higher in every later set. */
    sequence: z.int().min(1),
    keys: z.array(Key).min(1).max(MAX_KEYS),
    /** Keys that are not trusted, even if this set or the configuration lists them. */
    revoked: z.array(Hotkey).max(MAX_REVOKED),
  })
  .refine(
    ({ keys }) => new Set(keys.map(({ ss58 }) => ss58)).size === keys.length,
    'A key is listed twice',
  );
export type KeySet = z.output<typeof KeySet>;

export const SignedKeySet = z.strictObject({
  key_set: KeySet,
  /** The signer's hotkey. */
  ss58: Hotkey,
  signature: z.string(),
});
export type SignedKeySet = z.output<typeof SignedKeySet>;

export function signKeySet(keySet: KeySet, signer: LocalSigner): SignedKeySet {
  return {
    key_set: keySet,
    ss58: signer.hotkey,
    signature: toHex(signer.sign(signedBytes(keySet))),
  };
}

/**
 * Returns the trusted keys: those of the set with their windows, and the roots that it does not list, except revoked
 * keys. Throws unless a root with the role `validator-control` has signed the set.
 */
export function trustedKeys(roots: readonly TrustedKey[], signed: SignedKeySet): TrustedKey[] {
  const root = roots.find(({ hotkey }) => hotkey === signed.ss58);
  if (root === undefined || !root.roles.includes(SIGNING_ROLE)) {
    throw new Error(
      `signed by ${signed.ss58}, which is not a trusted key with the role ${SIGNING_ROLE}`,
    );
  }
  const signature = signatureFromHex(signed.signature);
  const publicKey = publicKeyOf(signed.ss58);
  const isValid =
    signature !== null &&
    publicKey !== null &&
    verifySr25519(signedBytes(signed.key_set), signature, publicKey);
  if (!isValid) throw new Error(`${signed.ss58} has not made this signature`);
  const { keys, revoked } = signed.key_set;
  const listed = keys.map((key) => ({
    hotkey: key.ss58,
    keyId: key.key_id,
    roles: key.roles,
    notBeforeMs: key.not_before,
    notAfterMs: key.not_after,
  }));
  const listedKeys = new Set(listed.map(({ hotkey }) => hotkey));
  return [...listed, ...roots.filter(({ hotkey }) => !listedKeys.has(hotkey))].filter(
    ({ hotkey }) => !revoked.includes(hotkey),
  );
}

function signedBytes(keySet: KeySet): Uint8Array {
  return new TextEncoder().encode(SIGNED_AS + canonicalJson(keySet));
}

const MAX_BYTES = 256 * 1024;

/** Reads a signed key set from a JSON file without verifying its signature. Throws with the problem of the file. */
export function readSignedKeySet(path: string): SignedKeySet {
  const file = statSync(path);
  // Reading a pipe could block forever.
  if (!file.isFile()) throw new Error('not a file');
  if (file.size > MAX_BYTES) throw new Error(`larger than ${MAX_BYTES} bytes`);
  const parsed = SignedKeySet.safeParse(JSON.parse(readFileSync(path, 'utf8')));
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(
    ({ path: at, message }) => `${at.join('.') || 'the document'}: ${message}`,
  );
  throw new Error(problems.join('; '));
}
