/** Where some wait for each other, so that they begin one thing together. */
import type { Clock } from '#shared/runtime/clock.ts';

export type Barrier = ReturnType<typeof createBarrier>;

/** For `count` of them; it opens at the latest `maxWaitMs` after the first has come. */
export function createBarrier(clock: Clock, count: number, maxWaitMs: number) {
  const opened = Promise.withResolvers<void>();
  const waiting = new AbortController();
  let missing = count;

  function open(): void {
    waiting.abort();
    opened.resolve();
  }

  function come(): void {
    missing -= 1;
    if (missing <= 0) open();
  }

  return {
    /** Resolves once all others have come too, or left, or the time is over. */
    arrive(): Promise<void> {
      if (missing === count) clock.sleep(maxWaitMs, waiting.signal).then(open, () => undefined);
      come();
      return opened.promise;
    },
    /** Of who has nothing to begin: nobody waits for it. */
    leave: come,
  };
}
