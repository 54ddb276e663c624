/**
 * Caches responses of agents for routes that require no authentication: however many requests clients send, the central
 * API calls an agent at most once in five seconds for the same key.
 */
import type { Clock } from '#shared/runtime/clock.ts';

const ANSWER_WITHIN_MS = 5_000;
/** Time for which a response, or a failed call, is reused. */
const FRESH_FOR_MS = 5_000;
/** Maximum number of cached responses; the entry whose last call to the agent is oldest is evicted first. */
export const MAX_CACHED = 1_000;

export type CachedAnswer<T> = {
  /** The latest response and its time; null before the first response. */
  last: { value: T; atMs: number } | null;
  /** True if the latest call was answered. */
  isLive: boolean;
};

type Entry<T> = {
  calledMs: number;
  last: CachedAnswer<T>['last'];
  pending: Promise<CachedAnswer<T>>;
};

/** The returned function never rejects: a call that fails counts as unanswered. */
export function createAgentCache<T>(clock: Clock) {
  const cache = new Map<string, Entry<T>>();

  /**
   * Returns false if no answer arrives in time. An answer that arrives later is still stored as the latest response.
   */
  async function isAnswered(entry: Entry<T>, call: () => Promise<T>): Promise<boolean> {
    const late = new AbortController();
    const answered = call().then(
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

  return (key: string, call: () => Promise<T>): Promise<CachedAnswer<T>> => {
    const calledMs = clock.monotonicMs();
    const before = cache.get(key);
    if (before !== undefined && calledMs - before.calledMs < FRESH_FOR_MS) return before.pending;
    const entry: Entry<T> = {
      calledMs,
      last: before?.last ?? null,
      pending: Promise.resolve({ last: null, isLive: false }),
    };
    entry.pending = isAnswered(entry, call).then((isLive) => ({ last: entry.last, isLive }));
    // Moves the entry to the end of the map, whose first entry is evicted.
    cache.delete(key);
    cache.set(key, entry);
    for (const oldest of cache.keys()) {
      if (cache.size <= MAX_CACHED) break;
      cache.delete(oldest);
    }
    return entry.pending;
  };
}
