/** Drafts of key sets, and the reasons for which a set is not published. Pure. */
import type { Hotkey } from '#shared/signing/hotkey.ts';
import { isKeyValidAt, type TrustedKey } from '#shared/signing/request-verifier.ts';
import {
  followKeySets,
  keysOf,
  type RootKeySet,
  type RootKeys,
  SIGNING_ROLE,
  type SignedRootKeySet,
  signersAmong,
} from '#shared/updates/root-key-set.ts';
import { MAX_DIGEST_BYTES, MAX_SEQUENCE_JUMP } from '#shared/updates/update-manifest.ts';

const DAY_MS = 86_400_000;
const VALIDITY_MS = 365 * DAY_MS;
/** Largest difference by which the clock of the offline machine may be ahead. */
const MAX_SKEW_MS = 600_000;
/** Maximum size of the key sets in an answer: 16 KiB remain for the manifest, because agents reject larger answers. */
const MAX_CHAIN_BYTES = MAX_DIGEST_BYTES - 16 * 1_024;
/** Time before an expiry at which the doctor warns. */
const WARN_MS = 30 * DAY_MS;

/** Returns a first set: one key of a validator, and the root. */
export function firstSet(validator: string, root: RootKeys, nowMs: number): RootKeySet {
  const expiresMs = nowMs + VALIDITY_MS;
  return {
    v: 2,
    kind: 'key-set',
    sequence: 1,
    issued_at: nowMs,
    expires_at: expiresMs,
    root,
    keys: [keyOf(validator, nowMs, expiresMs)],
    revoked: [],
    manifests: { since: nowMs, min_sequence: 1 },
  };
}

/**
 * Returns the set after `set`, valid for another year. Keys that were valid until the end of the set stay valid as
 * long.
 */
export function nextSet(set: RootKeySet, nowMs: number): RootKeySet {
  const expiresMs = nowMs + VALIDITY_MS;
  const keys = set.keys.map((key) =>
    key.not_after === set.expires_at ? { ...key, not_after: expiresMs } : key,
  );
  return { ...set, sequence: set.sequence + 1, issued_at: nowMs, expires_at: expiresMs, keys };
}

/**
 * Returns the set after a theft of the key `stolen`, which it revokes. Agents discard the sequence that they have
 * accepted, because the stolen key may have signed a high one. Returns null if the set does not list the key.
 */
export function recoverySet(
  set: RootKeySet,
  { stolen, fresh }: { stolen: string; fresh: string },
  nowMs: number,
): RootKeySet | null {
  const others = set.keys.filter(({ ss58 }) => ss58 !== stolen);
  if (others.length === set.keys.length) return null;
  const next = nextSet({ ...set, keys: others }, nowMs);
  return {
    ...next,
    keys: [...next.keys, keyOf(fresh, nowMs, next.expires_at)],
    revoked: [...set.revoked, stolen],
    manifests: { ...set.manifests, since: nowMs },
  };
}

function keyOf(ss58: string, fromMs: number, untilMs: number): RootKeySet['keys'][number] {
  return { key_id: ss58, ss58, roles: [SIGNING_ROLE], not_before: fromMs, not_after: untilMs };
}

export type PublishFacts = {
  nowMs: number;
  /** The validator's key. */
  own: Hotkey;
  /** The published sets, oldest first. */
  chain: readonly SignedRootKeySet[];
  /** Sequence of the newest release; null before the first. */
  releaseSequence: number | null;
};

/** Returns why agents would not accept the set, or no manifest under it; null if it may be published. */
export function publishProblem(signed: SignedRootKeySet, facts: PublishFacts): string | null {
  const { nowMs, own, chain, releaseSequence } = facts;
  const { key_set: set } = signed;
  const newest = chain.at(-1)?.key_set ?? null;
  if (newest !== null && set.sequence <= newest.sequence) {
    return `its sequence is ${set.sequence}, and ${newest.sequence} is already published`;
  }
  const latestMs = nowMs + MAX_SKEW_MS;
  if (set.issued_at > latestMs)
    return 'issued_at is in the future: check the clock of the offline machine';
  if (set.manifests.since > latestMs)
    return 'manifests.since is in the future: agents would refuse every manifest';
  if (set.expires_at <= nowMs) return 'it has expired';
  const ownKey = keysOf(set).find(({ hotkey }) => hotkey === own);
  if (!ownKey?.roles.includes(SIGNING_ROLE) || !isKeyValidAt(ownKey, nowMs)) {
    return `it does not list this validator’s key ${own} with the role ${SIGNING_ROLE}, valid now`;
  }
  const pinned: TrustedKey[] = [{ hotkey: own, roles: [SIGNING_ROLE] }];
  const accepted = chain.at(-1) ?? null;
  if (followKeySets([signed], { root: null, pinned, accepted, nowMs }).isRefused) {
    const roots = [newest?.root, set.root].flatMap((root) => (root === undefined ? [] : [root]));
    const counts = roots.map((root) => `${describeSigners(signed, root)}`);
    return `signatures are missing: ${[...new Set(counts)].join('; ')}`;
  }
  if (newest !== null && set.manifests.since < newest.manifests.since)
    return 'manifests.since is earlier than in the published set';
  if (Buffer.byteLength(JSON.stringify([...chain, signed])) > MAX_CHAIN_BYTES) {
    return `with the earlier sets it is longer than ${MAX_CHAIN_BYTES} bytes: remove keys or old revocations`;
  }
  return releaseSequence === null ? null : floorProblem(set, releaseSequence);
}

function floorProblem({ manifests }: RootKeySet, releaseSequence: number): string | null {
  const { min_sequence: least } = manifests;
  if (least <= releaseSequence && releaseSequence < least + MAX_SEQUENCE_JUMP) return null;
  return `manifests.min_sequence is ${least}, but the newest release has the sequence ${releaseSequence}: set it to ${releaseSequence}`;
}

/** Describes how many keys of the root have signed: `2 of 3 root keys have signed, 2 are required`. */
export function describeSigners(signed: SignedRootKeySet, root: RootKeys): string {
  const signers = signersAmong(signed, root.keys);
  return `${signers.length} of ${root.keys.length} root keys have signed, ${root.threshold} are required`;
}

export type Expiry = { atMs: number; what: string; isUrgent: boolean; isOver: boolean };

/** Returns the earlier of the expiries of the set and of the validator's key in it. */
export function nextExpiry(set: RootKeySet, own: string, nowMs: number): Expiry {
  const key = set.keys.find(({ ss58 }) => ss58 === own);
  const keyMs = key?.not_after ?? 0;
  const isKey = keyMs < set.expires_at;
  const atMs = isKey ? keyMs : set.expires_at;
  const what = isKey ? `the key ${own} in key set ${set.sequence}` : `key set ${set.sequence}`;
  return { atMs, what, isUrgent: atMs - nowMs < WARN_MS, isOver: atMs <= nowMs };
}
