/** Limits on concurrent work: a semaphore whose callers wait, and a per-owner limit that rejects at once. */

/** Runs at most `limit` pieces of work at a time; further work waits in order. */
export function createSemaphore(limit: number) {
  let free = limit;
  const waiting: (() => void)[] = [];

  function acquire(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    if (free > 0) {
      free -= 1;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const enter = () => {
        signal?.removeEventListener('abort', leave);
        resolve();
      };
      const leave = () => {
        waiting.splice(waiting.indexOf(enter), 1);
        reject(signal?.reason);
      };
      waiting.push(enter);
      signal?.addEventListener('abort', leave, { once: true });
    });
  }

  /** Passes the slot directly to the longest waiter, so that no other caller can overtake it. */
  function release(): void {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  }

  return {
    /**
     * Runs `work` when a slot is free. Rejects if the signal aborts while it waits. Once `work` has begun, `work` must
     * handle the signal itself.
     */
    async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
      await acquire(signal);
      try {
        return await work();
      } finally {
        release();
      }
    },
  };
}

/** A limit on slots in use, per owner and in total. */
export type PerOwnerLimit = {
  /** Returns false if `owner` has no free slot, or none is free in total and `owner` has its assured ones. */
  tryAcquire(owner: string): boolean;
  /** Releases a slot; does nothing if `owner` has none. */
  release(owner: string): void;
};

/**
 * `assured` slots of each owner are free also above `totalLimit`, so that other owners cannot take all slots. Only for a
 * bounded number of owners.
 */
export function createPerOwnerLimit(
  perOwner: number,
  totalLimit: number,
  assured = 0,
): PerOwnerLimit {
  const inUse = new Map<string, number>();
  let total = 0;
  return {
    tryAcquire(owner) {
      const own = inUse.get(owner) ?? 0;
      if (own >= perOwner || (total >= totalLimit && own >= assured)) return false;
      inUse.set(owner, own + 1);
      total += 1;
      return true;
    },
    release(owner) {
      const own = inUse.get(owner) ?? 0;
      if (own === 0) return;
      total -= 1;
      if (own === 1) inUse.delete(owner);
      else inUse.set(owner, own - 1);
    },
  };
}
