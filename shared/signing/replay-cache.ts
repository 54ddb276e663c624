/** Nonces seen, each until no request bearing it could still be in its time window (validator reference 2.3). */

export type ReplayCache = {
  has(signer: string, nonce: string, nowMs: number): boolean;
  /** `full` refuses: a live entry is never evicted, or a flood would make replays possible. */
  add(signer: string, nonce: string, nowMs: number): 'added' | 'seen' | 'full';
};

const CAPACITY = 100_000;

/** `ttlMs` is twice the allowed clock skew. */
export function createReplayCache(ttlMs: number, capacity: number = CAPACITY): ReplayCache {
  /** Insertion order is expiry order, because every entry lives equally long. */
  const expiries = new Map<string, number>();

  function dropExpired(nowMs: number): void {
    for (const [key, expiresMs] of expiries) {
      if (expiresMs > nowMs) return;
      expiries.delete(key);
    }
  }

  return {
    has(signer, nonce, nowMs) {
      const expiresMs = expiries.get(`${signer} ${nonce}`);
      return expiresMs !== undefined && expiresMs > nowMs;
    },
    add(signer, nonce, nowMs) {
      dropExpired(nowMs);
      const key = `${signer} ${nonce}`;
      if (expiries.has(key)) return 'seen';
      if (expiries.size >= capacity) return 'full';
      expiries.set(key, nowMs + ttlMs);
      return 'added';
    },
  };
}
