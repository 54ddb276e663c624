/** A clock that only the test moves. Sleepers wake in order of their deadlines. */
import type { Clock } from '#shared/runtime/clock.ts';

type Sleeper = { dueMs: number; wake(): void };

export type ManualClock = Clock & {
  /** Advances time and wakes every sleeper that becomes due, each at its deadline. */
  advance(ms: number): Promise<void>;
};

/** Starts at `startMs` (milliseconds since the epoch). Wall clock and monotonic clock advance together. */
export function createManualClock(startMs = 1_800_000_000_000): ManualClock {
  let nowMs = startMs;
  let sleepers: Sleeper[] = [];

  function addSleeper(ms: number, wake: () => void): () => void {
    const sleeper = { dueMs: nowMs + ms, wake };
    sleepers.push(sleeper);
    return () => {
      sleepers = sleepers.filter((other) => other !== sleeper);
    };
  }

  return {
    now: () => nowMs,
    monotonicMs: () => nowMs,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) {
          reject(signal.reason);
          return;
        }
        const remove = addSleeper(ms, resolve);
        signal?.addEventListener('abort', () => {
          remove();
          reject(signal.reason);
        });
      }),
    deadline(ms, parent) {
      const timeout = new AbortController();
      addSleeper(ms, () => timeout.abort(new DOMException('deadline passed', 'TimeoutError')));
      return parent === undefined ? timeout.signal : AbortSignal.any([timeout.signal, parent]);
    },
    async advance(ms) {
      // Lets callers that are about to sleep do so before time moves.
      await settle();
      const untilMs = nowMs + ms;
      for (;;) {
        const [next] = sleepers.toSorted((a, b) => a.dueMs - b.dueMs);
        if (next === undefined || next.dueMs > untilMs) break;
        nowMs = Math.max(nowMs, next.dueMs);
        sleepers = sleepers.filter((sleeper) => sleeper !== next);
        next.wake();
        await settle();
      }
      nowMs = untilMs;
      await settle();
    },
  };
}

/** Lets promise chains that were just resolved run to their next wait. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
}
