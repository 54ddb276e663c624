/** Reads an account's feed from any place in the feed. */
import { parseIsoTime } from '#shared/runtime/clock.ts';
import type { Database } from '../../platform/database/tables.ts';
import type { AccountEvent } from './event.schemas.ts';
import { toAccountEvent } from './event.service.ts';
import {
  type FeedFilter,
  findPlace,
  findPlaceInTime,
  placeEvents,
  readFeed,
} from './event-feed.store.ts';
import { createEventWatches, type EventWatchDeps } from './event-watch.ts';

/** Maximum number of events per page. */
const PAGE_EVENTS = 100;

/** `since`: an event's id or an ISO time; undefined for new events only. */
export type FeedStart = { since: string | undefined; podId: string | undefined };

export type FeedReader = {
  /** True if the event id is unknown. The feed then starts with its first event. */
  isGap: boolean;
  /**
   * Yields existing events and then new events, a page whenever the reader requests one. Rejects when `signal` aborts.
   */
  pages(signal: AbortSignal): AsyncGenerator<AccountEvent[]>;
};

export type EventFeeds = ReturnType<typeof createEventFeeds>;

type Position = { after: number; sinceMs?: number; isGap: boolean };

/** Last place of an account's feed; 0 if it is empty. */
export function feedEnd(db: Database, accountId: string): Promise<number> {
  return placeEvents(db, accountId);
}

/** The next events after a place, with their places. */
export async function eventsAfter(
  db: Database,
  accountId: string,
  after: number,
  limit: number,
): Promise<{ place: number; event: AccountEvent }[]> {
  const upTo = await placeEvents(db, accountId);
  const rows = await readFeed(db, accountId, { after, upTo }, {}, limit);
  return rows.map((row) => ({ place: row.feed_no, event: toAccountEvent(row) }));
}

/** Place of the first event at or after a time; null if there is none. */
export async function placeOfTime(
  db: Database,
  accountId: string,
  sinceMs: number,
): Promise<number | null> {
  await placeEvents(db, accountId);
  return findPlaceInTime(db, accountId, sinceMs);
}

export function createEventFeeds(deps: EventWatchDeps) {
  const { db } = deps;
  const watches = createEventWatches(deps);

  async function positionOf(accountId: string, { since, podId }: FeedStart): Promise<Position> {
    // Assigns a place to the client's last event, because the client may have read that event from a list.
    const last = await placeEvents(db, accountId);
    if (since === undefined) return { after: last, isGap: false };
    const sinceMs = parseIsoTime(since);
    if (sinceMs !== null) {
      // A pod has few events, so they are filtered by time one by one.
      const first = podId === undefined ? await findPlaceInTime(db, accountId, sinceMs) : 1;
      return { after: first === null ? last : first - 1, sinceMs, isGap: false };
    }
    const place = await findPlace(db, accountId, since);
    return { after: place ?? 0, isGap: place === null };
  }

  async function* pages(
    accountId: string,
    start: number,
    filter: FeedFilter,
    signal: AbortSignal,
  ): AsyncGenerator<AccountEvent[]> {
    const { watch, leave } = watches.join(accountId);
    try {
      for (let after = start; ; ) {
        const upTo = await watch.beyond(after, signal);
        const page = await readFeed(db, accountId, { after, upTo }, filter, PAGE_EVENTS);
        if (page.length > 0) yield page.map(toAccountEvent);
        after = page.length < PAGE_EVENTS ? upTo : (page.at(-1)?.feed_no ?? upTo);
      }
    } finally {
      leave();
    }
  }

  return {
    /** Opens a feed, which starts at the time of this call and not when the first page is read. */
    async open(accountId: string, start: FeedStart): Promise<FeedReader> {
      const { after, sinceMs, isGap } = await positionOf(accountId, start);
      const { podId } = start;
      return { isGap, pages: (signal) => pages(accountId, after, { podId, sinceMs }, signal) };
    },
  };
}
