/** The key set that the agent has accepted, and what a newer one changes. Pure. */
import { z } from 'zod';
import { canonicalJson } from '#shared/signing/canonical-json.ts';
import type { TrustedKey } from '#shared/signing/request-verifier.ts';
import {
  followKeySets,
  type RootKeySet,
  RootKeys,
  SignedRootKeySet,
} from '#shared/updates/root-key-set.ts';

export const Trust = z.object({
  /** AGENT_ROOT_KEYS at the time of acceptance. */
  configured: RootKeys.nullable(),
  signed: SignedRootKeySet,
});
export type Trust = z.output<typeof Trust>;

export type TrustFacts = {
  nowMs: number;
  /** Keys that the configuration trusts. */
  keys: readonly TrustedKey[];
  /** AGENT_ROOT_KEYS; null if it is not set. */
  root: RootKeys | null;
};

/** Returns the trust that still holds: it ends when the provider configures another root, after a root key was lost. */
export function trustUnder(root: RootKeys | null, trust: Trust | null): Trust | null {
  if (trust === null || root === null) return trust;
  return canonicalJson(trust.configured) === canonicalJson(root) ? trust : null;
}

export type NewTrust = {
  trust: Trust | null;
  /** True if the agent has to forget the sequence that it accepted. */
  isReset: boolean;
  /** True if a newer set lacks signatures. */
  isRefused: boolean;
};

/** Returns the trust after an answer with these key sets. */
export function trustAfter(
  offered: readonly SignedRootKeySet[],
  before: Trust | null,
  { nowMs, keys, root }: TrustFacts,
): NewTrust {
  const trusted = trustUnder(root, before);
  const { accepted, isRefused } = followKeySets(offered, {
    root,
    pinned: keys,
    accepted: trusted?.signed ?? null,
    nowMs,
  });
  if (accepted === null || accepted === trusted?.signed) {
    return { trust: trusted, isReset: false, isRefused };
  }
  const sinceMs = trusted?.signed.key_set.manifests.since ?? -1;
  const isReset = accepted.key_set.manifests.since > sinceMs;
  return { trust: { configured: root, signed: accepted }, isReset, isRefused };
}

/** Returns the accepted key set; null before the first. */
export function keySetOf(trust: Trust | null): RootKeySet | null {
  return trust?.signed.key_set ?? null;
}
