/** The feeds that somebody follows: one look at the database for all who follow the same account's here. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Notifier } from '../../platform/database/notifier.ts';
import type { Database } from '../../platform/database/tables.ts';
import { placeEvents } from './event-feed.store.ts';

/** Without any word: only what was not told is found so late. Shorter by chance, so that watches spread out. */
const CALM_PAUSE_MS = 30_000;
const CALM_JITTER_MS = 10_000;
/** A word comes before its event is committed: looks go on at growing pauses, for a commit that takes long. */
const FIRST_PAUSE_MS = 10;

export type EventWatch = {
  /** The feed's last place, as soon as that lies beyond `place`. Rejects when `signal` aborts. */
  beyond(place: number, signal: AbortSignal): Promise<number>;
};

export type EventWatches = ReturnType<typeof createEventWatches>;

export type EventWatchDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  log: Log;
  notifier: Notifier;
};

/** A feed is looked at as long as it has followers. */
export function createEventWatches(deps: EventWatchDeps) {
  const watches = new Map<
    string,
    { watch: EventWatch; followers: number; leave: AbortController }
  >();
  return {
    /** To be left once, when the follower goes. */
    join(accountId: string): { watch: EventWatch; leave(): void } {
      const leave = new AbortController();
      const entry = watches.get(accountId) ?? {
        watch: startWatch(deps, accountId, leave.signal),
        followers: 0,
        leave,
      };
      entry.followers += 1;
      watches.set(accountId, entry);
      return {
        watch: entry.watch,
        leave() {
          entry.followers -= 1;
          if (entry.followers > 0) return;
          watches.delete(accountId);
          entry.leave.abort();
        },
      };
    },
  };
}

/** Runs until `over` aborts. */
function startWatch(deps: EventWatchDeps, accountId: string, over: AbortSignal): EventWatch {
  const { db, clock, random, log, notifier } = deps;
  let last = 0;
  let wake = new AbortController();
  let heardAtMs = Number.NEGATIVE_INFINITY;
  const waiting = new Set<() => void>();

  async function look(): Promise<void> {
    const found = await placeEvents(db, accountId);
    if (found === last) return;
    last = found;
    for (const resume of waiting) resume();
  }

  /** As long as it has been since the last word, so that the pauses double. */
  function pauseMs(): number {
    const sinceMs = clock.monotonicMs() - heardAtMs;
    return Math.min(Math.max(sinceMs, FIRST_PAUSE_MS), CALM_PAUSE_MS - random.int(CALM_JITTER_MS));
  }

  async function run(): Promise<void> {
    while (!over.aborted) {
      wake = new AbortController();
      await look().catch((error: unknown) => {
        log.warn({ err: error, account_id: accountId }, 'a feed of events was not read');
      });
      await clock.sleep(pauseMs(), AbortSignal.any([wake.signal, over])).catch(() => undefined);
    }
  }

  const stopListening = notifier.onNotify(`events ${accountId}`, () => {
    heardAtMs = clock.monotonicMs();
    wake.abort();
  });
  over.addEventListener('abort', stopListening, { once: true });
  void run();

  async function nextGrowth(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const resume = () => resolve();
    waiting.add(resume);
    signal.addEventListener('abort', resume, { once: true });
    await promise;
    waiting.delete(resume);
    signal.removeEventListener('abort', resume);
  }

  return {
    async beyond(place, signal) {
      for (;;) {
        signal.throwIfAborted();
        if (last > place) return last;
        await nextGrowth(signal);
      }
    },
  };
}
