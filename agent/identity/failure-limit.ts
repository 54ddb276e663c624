/** Slows down whoever makes us check signatures in vain: a token bucket per address (validator reference 2.2). */

import { addressKeyOf } from '#shared/http/addresses.ts';
import type { Clock } from '#shared/runtime/clock.ts';

export type FailureLimit = {
  /** False while the address has spent its failures. */
  allows(address: string): boolean;
  /** Takes one token. */
  failed(address: string): void;
};

/** Failures in a row before an address has to wait. */
export const BURST = 30;
/** One failure is forgiven in this time. */
export const REFILL_MS = 1_000;
/** Addresses remembered; the one that failed longest ago is forgotten first. */
const MAX_ADDRESSES = 10_000;

type Bucket = { tokens: number; atMs: number };

/** `maxAddresses` is for tests. */
export function createFailureLimit(clock: Clock, maxAddresses = MAX_ADDRESSES): FailureLimit {
  const buckets = new Map<string, Bucket>();

  function tokensOf(network: string): number {
    const bucket = buckets.get(network);
    if (bucket === undefined) return BURST;
    return Math.min(BURST, bucket.tokens + (clock.monotonicMs() - bucket.atMs) / REFILL_MS);
  }

  return {
    allows: (address) => tokensOf(addressKeyOf(address)) >= 1,
    failed(address) {
      const network = addressKeyOf(address);
      const tokens = Math.max(0, tokensOf(network) - 1);
      // Deleted first, so that the map's order is the order of the last failures.
      buckets.delete(network);
      const [oldest] = buckets.keys();
      if (oldest !== undefined && buckets.size >= maxAddresses) buckets.delete(oldest);
      buckets.set(network, { tokens, atMs: clock.monotonicMs() });
    },
  };
}
