/** Bounds how many pieces of work of one kind run at a time; the others wait in order. */

/** At most `limit` at a time. */
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

  /** Hands the place to the next in line, so that nobody can overtake it. */
  function release(): void {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  }

  return {
    /** Runs `work` when a place is free. Aborting while waiting rejects; afterwards it is up to `work`. */
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

/** Room that several owners share: so much for each, so much for all. */

export type Counter = {
  /** False when there is no room for `owner`. */
  take(owner: string): boolean;
  release(owner: string): void;
};

/** Counts what each owner holds; releasing more than was taken is harmless. */
export function createCounter(perOwner: number, total: number): Counter {
  const held = new Map<string, number>();
  let sum = 0;
  return {
    take(owner) {
      const own = held.get(owner) ?? 0;
      if (own >= perOwner || sum >= total) return false;
      held.set(owner, own + 1);
      sum += 1;
      return true;
    },
    release(owner) {
      const own = held.get(owner) ?? 0;
      if (own === 0) return;
      sum -= 1;
      if (own === 1) held.delete(owner);
      else held.set(owner, own - 1);
    },
  };
}
