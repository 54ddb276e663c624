/** Token buckets by key, in bounded memory. */
import type { Clock } from '#shared/runtime/clock.ts';

/** Allows `quota` requests at once and refills the quota over each window. */
export type Rate = { quota: number; windowMs: number };

/** State of a bucket after a request; an allowed request has used one token. */
export type Reading = {
  allowed: boolean;
  /** Whole tokens that are left. */
  remaining: number;
  /** Seconds, rounded up, until the bucket is full again. */
  resetSeconds: number;
  /** Seconds, rounded up, until there is a token; 0 if there is one now. */
  retrySeconds: number;
};

/** `level` counts fractions of a token, `windowMs` of which are one token: with integers no wait ends too early. */
type Bucket = { level: number; atMs: number };

export type TokenBuckets = ReturnType<typeof createTokenBuckets>;

/**
 * Holds at most `maxKeys` buckets. Above that, the least recently used bucket is dropped, which has the effect of a
 * refill. Uses monotonic time, so that changes of the wall clock have no effect.
 */
export function createTokenBuckets(
  { quota, windowMs }: Rate,
  { clock, maxKeys }: { clock: Clock; maxKeys: number },
) {
  const full = quota * windowMs;
  /** Ordered by last use, because a Map keeps the order of insertion. */
  const buckets = new Map<string, Bucket>();

  function levelOf(key: string, nowMs: number): number {
    const bucket = buckets.get(key);
    // Each millisecond adds `quota` fractions of a token, so a whole window adds `quota` tokens.
    return bucket === undefined
      ? full
      : Math.min(full, bucket.level + (nowMs - bucket.atMs) * quota);
  }

  function store(key: string, bucket: Bucket): void {
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
      store(key, { level, atMs: nowMs });
      return {
        allowed,
        remaining: Math.floor(level / windowMs),
        resetSeconds: secondsFor(full - level),
        retrySeconds: secondsFor(Math.max(0, windowMs - level)),
      };
    },

    size: () => buckets.size,
  };
}
