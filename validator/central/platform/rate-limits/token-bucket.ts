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
 * refill. Uses monotonic time, so that changes of the wall clock have no effect. `divisor` returns the number of
 * processes that share the rate, each with an equal part; 1 if it is absent.
 */
export function createTokenBuckets(
  rate: Rate,
  {
    clock,
    maxKeys,
    divisor = () => 1,
  }: { clock: Clock; maxKeys: number; divisor?: (() => number) | undefined },
) {
  const { windowMs } = rate;
  /** Ordered by last use, because a Map retains the order of insertion. */
  const buckets = new Map<string, Bucket>();

  const quotaNow = () => Math.max(1, Math.floor(rate.quota / divisor()));

  function levelOf(key: string, quota: number, nowMs: number): number {
    const full = quota * windowMs;
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

  return {
    /** Number of requests that a window allows at present. */
    quota: quotaNow,

    /** Takes a token if one is available, and returns the state of the bucket. */
    take(key: string): Reading {
      const nowMs = Math.floor(clock.monotonicMs());
      const quota = quotaNow();
      const secondsFor = (fractions: number) => Math.ceil(fractions / quota / 1000);
      const before = levelOf(key, quota, nowMs);
      const allowed = before >= windowMs;
      const level = allowed ? before - windowMs : before;
      store(key, { level, atMs: nowMs });
      return {
        allowed,
        remaining: Math.floor(level / windowMs),
        resetSeconds: secondsFor(quota * windowMs - level),
        retrySeconds: secondsFor(Math.max(0, windowMs - level)),
      };
    },

    size: () => buckets.size,
  };
}
