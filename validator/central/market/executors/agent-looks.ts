/** Asks agents for routes that are open to anybody: not more often than every few seconds, and never for long. */
import type { Clock } from '#shared/runtime/clock.ts';

const ANSWER_WITHIN_MS = 5_000;
/** However often a route is asked, its agent is not asked more often than this for the same. */
const FRESH_FOR_MS = 5_000;
/** Those that were asked for longest ago are forgotten first. */
export const MAX_REMEMBERED = 1_000;

export type Look<T> = {
  /** The last answer that came, and when; null when none ever did. */
  last: { value: T; atMs: number } | null;
  /** Whether it came when it was last asked for. */
  isLive: boolean;
};

type Remembered<T> = { askedMs: number; last: Look<T>['last']; looking: Promise<Look<T>> };

/** Never rejects: an agent that fails is one that does not answer. */
export function createAgentLooks<T>(clock: Clock) {
  const remembered = new Map<string, Remembered<T>>();

  /** False when there is no answer in time; one that comes later still counts as the last. */
  async function isAnswered(entry: Remembered<T>, ask: () => Promise<T>): Promise<boolean> {
    const late = new AbortController();
    const answered = ask().then(
      (value) => {
        entry.last = { value, atMs: clock.now() };
        return true;
      },
      () => false,
    );
    const timeout = clock.sleep(ANSWER_WITHIN_MS, late.signal).then(
      () => false,
      () => false,
    );
    try {
      return await Promise.race([answered, timeout]);
    } finally {
      late.abort();
    }
  }

  return (key: string, ask: () => Promise<T>): Promise<Look<T>> => {
    const askedMs = clock.monotonicMs();
    const before = remembered.get(key);
    if (before !== undefined && askedMs - before.askedMs < FRESH_FOR_MS) return before.looking;
    const entry: Remembered<T> = {
      askedMs,
      last: before?.last ?? null,
      looking: Promise.resolve({ last: null, isLive: false }),
    };
    entry.looking = isAnswered(entry, ask).then((isLive) => ({ last: entry.last, isLive }));
    // Last in the order of the map, so that the first is the one to go.
    remembered.delete(key);
    remembered.set(key, entry);
    for (const oldest of remembered.keys()) {
      if (remembered.size <= MAX_REMEMBERED) break;
      remembered.delete(oldest);
    }
    return entry.looking;
  };
}
