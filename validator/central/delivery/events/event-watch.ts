/** Watches of feeds: all followers of an account in this process share one query of the database. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Notifier } from '../../platform/database/notifier.ts';
import type { Database } from '../../platform/database/tables.ts';
import { placeEvents } from './event-feed.store.ts';

/**
 * Polling interval while no notification arrives. These polls only find events whose notification was lost. Jitter
 * spreads the polls of different watches.
 */
const CALM_PAUSE_MS = 30_000;
const CALM_JITTER_MS = 10_000;
/** Polling interval while notifications of other processes cannot arrive. */
const DEAF_PAUSE_MS = 2_000;
/**
 * First pause after a notification. The notification is sent before its event is committed, so polling continues with
 * growing pauses until a slow commit is visible.
 */
const FIRST_PAUSE_MS = 10;

export type EventWatch = {
  /** Resolves with the feed's last place once the last place is after `place`. Rejects when `signal` aborts. */
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

/** Creates the watches. Each watch polls its feed as long as it has followers. */
export function createEventWatches(deps: EventWatchDeps) {
  const watches = new Map<
    string,
    { watch: EventWatch; followers: number; leave: AbortController }
  >();
  return {
    /** Adds a follower. The follower must call `leave` exactly once at its end. */
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

/** Runs until `closing` aborts. */
function startWatch(deps: EventWatchDeps, accountId: string, closing: AbortSignal): EventWatch {
  const { db, clock, random, log, notifier } = deps;
  let last = 0;
  let wake = new AbortController();
  let notifiedAtMs = Number.NEGATIVE_INFINITY;
  const waiting = new Set<() => void>();

  async function poll(): Promise<void> {
    const found = await placeEvents(db, accountId);
    if (found === last) return;
    last = found;
    for (const resume of waiting) resume();
  }

  /**
   * Returns the pause before the next poll. The pause equals the time since the last notification, so that the pauses
   * double.
   */
  function pauseMs(): number {
    const sinceMs = clock.monotonicMs() - notifiedAtMs;
    const calmMs = notifier.receivesOthers()
      ? CALM_PAUSE_MS - random.int(CALM_JITTER_MS)
      : DEAF_PAUSE_MS;
    return Math.min(Math.max(sinceMs, FIRST_PAUSE_MS), calmMs);
  }

  async function run(): Promise<void> {
    while (!closing.aborted) {
      wake = new AbortController();
      await poll().catch((error: unknown) => {
        log.warn({ err: error, account_id: accountId }, 'reading an event feed failed');
      });
      await clock.sleep(pauseMs(), AbortSignal.any([wake.signal, closing])).catch(() => undefined);
    }
  }

  const stopListening = notifier.onNotify(`events ${accountId}`, () => {
    notifiedAtMs = clock.monotonicMs();
    wake.abort();
  });
  closing.addEventListener('abort', stopListening, { once: true });
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
