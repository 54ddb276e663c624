/** Token buckets by key, in bounded memory (marketplace reference 1.12). */
import type { Clock } from '#shared/runtime/clock.ts';

/** `quota` requests at once, and as many again over each window. */
export type Rate = { quota: number; windowMs: number };

/** What one request found in its bucket; `allowed` ones have taken their token. */
export type Reading = {
  allowed: boolean;
  /** Whole tokens left. */
  remaining: number;
  /** Seconds, rounded up, until the bucket is full again. */
  resetSeconds: number;
  /** Seconds, rounded up, until there is a token; 0 while there is one. */
  retrySeconds: number;
};

/** `level` in fractions of a token, `windowMs` of them each: whole numbers, so that no wait ends a moment too early. */
type Bucket = { level: number; atMs: number };

export type TokenBuckets = ReturnType<typeof createTokenBuckets>;

/**
 * At most `maxKeys` buckets are kept: beyond that the one unused for longest is forgotten, which only
 * refills it. Time is monotonic, so that a clock that is set neither fills nor empties any.
 */
export function createTokenBuckets(
  { quota, windowMs }: Rate,
  { clock, maxKeys }: { clock: Clock; maxKeys: number },
) {
  const full = quota * windowMs;
  /** In order of their last use: a Map keeps the order of insertion. */
  const buckets = new Map<string, Bucket>();

  function levelOf(key: string, nowMs: number): number {
    const bucket = buckets.get(key);
    // Each millisecond brings `quota` fractions: a window brings the quota.
    return bucket === undefined
      ? full
      : Math.min(full, bucket.level + (nowMs - bucket.atMs) * quota);
  }

  function keep(key: string, bucket: Bucket): void {
    buckets.delete(key);
    buckets.set(key, bucket);
    if (buckets.size <= maxKeys) return;
    const [oldest] = buckets.keys();
    if (oldest !== undefined) buckets.delete(oldest);
  }

  const secondsFor = (level: number) => Math.ceil(level / quota / 1000);

  return {
    /** Takes a token if there is one. */
    take(key: string): Reading {
      const nowMs = Math.floor(clock.monotonicMs());
      const before = levelOf(key, nowMs);
      const allowed = before >= windowMs;
      const level = allowed ? before - windowMs : before;
      keep(key, { level, atMs: nowMs });
      return {
        allowed,
        remaining: Math.floor(level / windowMs),
        resetSeconds: secondsFor(full - level),
        retrySeconds: secondsFor(Math.max(0, windowMs - level)),
      };
    },

    /** How many keys are remembered. */
    size: () => buckets.size,
  };
}
