/** Token buckets by key, in bounded memory. */
import type { Clock } from '#shared/runtime/clock.ts';

/** Rate that allows `quota` requests at once and refills the quota over each window. */
export type Rate = { quota: number; windowMs: number };

/** State of a bucket after a request. An allowed request has used one token. */
export type Reading = {
  allowed: boolean;
  /** Number of whole tokens that remain. */
  remaining: number;
  /** Seconds until the bucket is full again, rounded up. */
  resetSeconds: number;
  /** Seconds until a token is available, rounded up; 0 if a token is available now. */
  retrySeconds: number;
};

/**
 * `level` counts fractions of a token; `windowMs` fractions are one token. With integers, rounding cannot end a wait
 * too early.
 */
type Bucket = { level: number; atMs: number };

export type TokenBuckets = ReturnType<typeof createTokenBuckets>;

/**
 * Stores at most `maxKeys` buckets. Above that, the least recently used bucket is removed, which has the effect of a
 * refill. Uses monotonic time, so that changes of the wall clock have no effect.
 */
export function createTokenBuckets(
  { quota, windowMs }: Rate,
  { clock, maxKeys }: { clock: Clock; maxKeys: number },
) {
  const full = quota * windowMs;
  /** Ordered by last use, because a Map retains the order of insertion. */
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
    /** Takes a token if one is available, and returns the state of the bucket. */
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
