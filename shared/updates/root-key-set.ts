/**
 * Key sets of version 2: the keys that may command agents and sign manifests, signed by a threshold of root keys that
 * are kept offline (shared/signing/README.md). The root keys of each set sign the next one. Pure.
 */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { canonicalJson } from '../signing/canonical-json.ts';
import { type Hotkey, HotkeyText, publicKeyOf } from '../signing/hotkey.ts';
import { KeyId } from '../signing/key-set.ts';
import { isKeyValidAt, ROLES, type TrustedKey } from '../signing/request-verifier.ts';
import { type LocalSigner, signatureFromHex, toHex, verifySr25519 } from '../signing/sr25519.ts';

/** Prefix of the signed text, so that the signature cannot be used for another purpose. */
const SIGNED_AS = 'podwright-key-set-v2\n';
const MAX_ROOT_KEYS = 16;
const MAX_KEYS = 32;
const MAX_REVOKED = 200;
/** Maximum number of signatures: of the root keys of two sets, and of the validator's key. */
const MAX_SIGNATURES = 2 * MAX_ROOT_KEYS + 1;
const MAX_SEQUENCE = 1_000_000_000;
/** Longest validity of a set: the ceremony takes place once a year. */
export const MAX_VALIDITY_MS: number = 400 * 86_400_000;
/** Maximum number of key sets in an answer. */
export const MAX_CHAIN = 8;
/** Only a key that may control agents may sign manifests, and may introduce the first root. */
export const SIGNING_ROLE = 'validator-control';

/** End of the year 9999. */
const MAX_EPOCH_MS = 253_402_300_799_999;
const EpochMs = z.int().min(0).max(MAX_EPOCH_MS);

/** The root: at least `threshold` of the keys have to sign a key set. A single stolen root key is never enough. */
export const RootKeys = z
  .strictObject(
    described(
      {
        threshold: z.int().min(2).max(MAX_ROOT_KEYS),
        keys: z.array(HotkeyText).min(2).max(MAX_ROOT_KEYS),
      },
      {
        threshold: 'Number of root keys that have to sign a key set.',
        keys: 'ss58 of the root keys.',
      },
    ),
  )
  .refine(({ keys }) => new Set(keys).size === keys.length, 'A root key is listed twice')
  .refine(({ threshold, keys }) => threshold <= keys.length, 'The threshold exceeds the keys');
export type RootKeys = z.output<typeof RootKeys>;

const Key = z
  .strictObject(
    described(
      {
        key_id: KeyId,
        ss58: HotkeyText,
        roles: z.array(z.enum(ROLES)).min(1).max(ROLES.length),
        not_before: EpochMs,
        not_after: EpochMs,
      },
      {
        key_id: 'Id of the key in signatures of manifests.',
        ss58: 'ss58 of the key.',
        roles: 'Roles of the key.',
        not_before: 'First millisecond of validity, milliseconds since the epoch.',
        not_after: 'Last millisecond of validity, milliseconds since the epoch.',
      },
    ),
  )
  .refine((key) => key.not_before <= key.not_after, 'not_before is after not_after');

export const RootKeySet = z
  .strictObject(
    described(
      {
        v: z.literal(2),
        kind: z.literal('key-set'),
        sequence: z.int().min(1).max(MAX_SEQUENCE),
        issued_at: EpochMs,
        expires_at: EpochMs,
        root: RootKeys,
        keys: z.array(Key).min(1).max(MAX_KEYS),
        revoked: z.array(HotkeyText).max(MAX_REVOKED),
        manifests: z.strictObject(
          described(
            { since: EpochMs, min_sequence: z.int().min(1).max(MAX_SEQUENCE) },
            {
              since:
                'Manifests issued earlier are invalid. A later time than in the set before makes agents forget the sequence that they accepted.',
              min_sequence: 'Lowest sequence of a manifest.',
            },
          ),
        ),
      },
      {
        v: 'Version of the format.',
        kind: 'Kind of document.',
        sequence: 'Number that increases with every set.',
        issued_at: 'Time of issue, milliseconds since the epoch.',
        expires_at: 'Time after which agents accept no manifest, milliseconds since the epoch.',
        root: 'Root keys that sign the next set.',
        keys: 'Keys that may sign requests and, with the role `validator-control`, manifests.',
        revoked: 'ss58 of keys that are not trusted, even if an agent’s configuration lists them.',
        manifests: 'Limits for manifests.',
      },
    ),
  )
  .superRefine((set, context) => {
    for (const problem of problemsOf(set)) context.addIssue(problem);
  });
export type RootKeySet = z.output<typeof RootKeySet>;

export const KeySetSignature = z.strictObject(
  described(
    { ss58: HotkeyText, signature: z.string().max(130) },
    { ss58: 'ss58 of the signer.', signature: 'Signature of the set in canonical JSON, hex.' },
  ),
);
export type KeySetSignature = z.output<typeof KeySetSignature>;

export const SignedRootKeySet = z
  .strictObject(
    described(
      { key_set: RootKeySet, signatures: z.array(KeySetSignature).max(MAX_SIGNATURES) },
      {
        key_set: 'The key set.',
        signatures:
          'Signatures of root keys of the set and of the set before. The first set also has one of a key that agents trust by their configuration.',
      },
    ),
  )
  // Each signature costs a verification, also in a forged answer.
  .refine(
    ({ signatures }) => new Set(signatures.map(({ ss58 }) => ss58)).size === signatures.length,
    'A key has signed twice',
  );
export type SignedRootKeySet = z.output<typeof SignedRootKeySet>;

type Listed = {
  issued_at: number;
  expires_at: number;
  root: { keys: readonly string[] };
  keys: readonly { ss58: string; not_after: number }[];
  revoked: readonly string[];
};

function problemsOf(set: Listed): string[] {
  const { issued_at: issuedMs, expires_at: expiresMs, root, revoked } = set;
  const online = set.keys.map(({ ss58 }) => ss58);
  const rules: [boolean, string][] = [
    [expiresMs > issuedMs, 'expires_at is not after issued_at'],
    [expiresMs - issuedMs <= MAX_VALIDITY_MS, 'expires_at is more than 400 days after issued_at'],
    [new Set(online).size === online.length, 'A key is listed twice'],
    [!online.some((ss58) => root.keys.includes(ss58)), 'A root key is also listed in keys'],
    [![...online, ...root.keys].some((ss58) => revoked.includes(ss58)), 'A listed key is revoked'],
    [set.keys.every((key) => key.not_after <= expiresMs), 'A key is valid after expires_at'],
  ];
  return rules.flatMap(([isMet, problem]) => (isMet ? [] : [problem]));
}

export function signRootKeySet(set: RootKeySet, signer: LocalSigner): KeySetSignature {
  return { ss58: signer.hotkey, signature: toHex(signer.sign(signedBytes(set))) };
}

/** Returns the document with more signatures. A later signature by the same key replaces the earlier one. */
export function withSignatures(
  { key_set, signatures }: SignedRootKeySet,
  more: readonly KeySetSignature[],
): SignedRootKeySet {
  const bySigner = new Map([...signatures, ...more].map((each) => [each.ss58, each]));
  return { key_set, signatures: [...bySigner.values()] };
}

/** Returns those of the keys that have signed the set. */
export function signersAmong(
  { key_set, signatures }: SignedRootKeySet,
  keys: readonly string[],
): string[] {
  const bytes = signedBytes(key_set);
  return keys.filter((ss58) =>
    signatures.some((each) => {
      if (each.ss58 !== ss58) return false;
      const [signature, publicKey] = [signatureFromHex(each.signature), publicKeyOf(ss58)];
      return signature !== null && publicKey !== null && verifySr25519(bytes, signature, publicKey);
    }),
  );
}

export type ChainFacts = {
  /** The configured root; null if only keys are configured. */
  root: RootKeys | null;
  /** Keys that the configuration trusts. */
  pinned: readonly TrustedKey[];
  /** The set that was accepted last. */
  accepted: SignedRootKeySet | null;
  nowMs: number;
};

/**
 * Follows the sets from the accepted one to the newest. The root of the accepted set, or else the configured root, has to
 * sign the next set; without either, a configured key with the role `validator-control` introduces the first one. Every
 * set also needs its own root, so that a mistake cannot appoint a root whose keys are lost. `isRefused`: the newest set lacks
 * signatures.
 */
export function followKeySets(
  offered: readonly SignedRootKeySet[],
  facts: ChainFacts,
): { accepted: SignedRootKeySet | null; isRefused: boolean } {
  let { accepted } = facts;
  let isRefused = false;
  const inOrder = offered.toSorted((one, other) => one.key_set.sequence - other.key_set.sequence);
  for (const signed of inOrder) {
    if (signed.key_set.sequence <= (accepted?.key_set.sequence ?? 0)) continue;
    // A refused set does not end the loop: a later set may be signed by the configured root.
    isRefused = !isAuthorized(signed, { ...facts, accepted });
    if (!isRefused) accepted = signed;
  }
  return { accepted, isRefused };
}

function isAuthorized(signed: SignedRootKeySet, facts: ChainFacts): boolean {
  const meets = ({ threshold, keys }: RootKeys) => signersAmong(signed, keys).length >= threshold;
  const root = facts.accepted?.key_set.root ?? facts.root;
  if (root !== null) return meets(root) && meets(signed.key_set.root);
  const introducers = facts.pinned
    .filter((key) => key.roles.includes(SIGNING_ROLE) && isKeyValidAt(key, facts.nowMs))
    .map(({ hotkey }) => hotkey);
  return signersAmong(signed, introducers).length > 0 && meets(signed.key_set.root);
}

/**
 * Returns the sets to publish, oldest first: each that changed the root, and the newest; at most the last MAX_CHAIN of
 * these.
 */
export function chainOf(sets: readonly SignedRootKeySet[]): SignedRootKeySet[] {
  const inOrder = sets.toSorted((one, other) => one.key_set.sequence - other.key_set.sequence);
  const rootOf = (at: number) => canonicalJson(inOrder[at]?.key_set.root ?? null);
  return inOrder
    .filter((_, at) => at === inOrder.length - 1 || rootOf(at) !== rootOf(at - 1))
    .slice(-MAX_CHAIN);
}

/** Returns the keys of the set with their periods of validity. */
export function keysOf({ keys }: RootKeySet): TrustedKey[] {
  return keys.map((key) => ({
    hotkey: key.ss58 as Hotkey,
    keyId: key.key_id,
    roles: key.roles,
    notBeforeMs: key.not_before,
    notAfterMs: key.not_after,
  }));
}

/** Returns the keys that may sign requests: those of the set, and the configured ones that it neither lists nor revokes. */
export function requestKeys(
  configured: readonly TrustedKey[],
  set: RootKeySet | null,
): readonly TrustedKey[] {
  if (set === null) return configured;
  const ruled = [...set.keys.map(({ ss58 }) => ss58), ...set.revoked];
  return [...keysOf(set), ...configured.filter(({ hotkey }) => !ruled.includes(hotkey))];
}

function signedBytes(set: RootKeySet): Uint8Array {
  return new TextEncoder().encode(SIGNED_AS + canonicalJson(set));
}
