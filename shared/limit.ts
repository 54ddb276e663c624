/** At most so many at once: the rest waits its turn, first come first served. */

export type Limit = <T>(work: () => Promise<T>) => Promise<T>;

/** `concurrency` works run at once; the caller bounds how many it submits. */
export function createLimit(concurrency: number): Limit {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running >= concurrency) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
