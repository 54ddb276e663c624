/** An account's events in the order of its feed, from any place in it, for as long as somebody reads. */
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

/** Events read at a time. */
const PAGE_EVENTS = 100;

/** Where to begin, by an event's id or an ISO time; from now on when absent. */
export type FeedWish = { since: string | undefined; podId: string | undefined };

export type FeedReader = {
  /** The place that was asked for is not known: it begins with the first event there is. */
  isGap: boolean;
  /** What is there, then what comes, at the reader's own pace. Rejects when `signal` aborts. */
  pages(signal: AbortSignal): AsyncGenerator<AccountEvent[]>;
};

export type EventFeeds = ReturnType<typeof createEventFeeds>;

type Start = { after: number; sinceMs?: number; isGap: boolean };

/** Where an account's feed ends now; 0 while it is empty. */
export function feedEnd(db: Database, accountId: string): Promise<number> {
  return placeEvents(db, accountId);
}

/** The next events after a place, each with its own. */
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

/** The place of the first event that is not older; null without one. */
export async function placeOfTime(
  db: Database,
  accountId: string,
  sinceMs: number,
): Promise<number | null> {
  await placeEvents(db, accountId);
  return findPlaceInTime(db, accountId, sinceMs);
}

/** Readers of feeds. */
export function createEventFeeds(deps: EventWatchDeps) {
  const { db } = deps;
  const watches = createEventWatches(deps);

  async function startOf(accountId: string, { since, podId }: FeedWish): Promise<Start> {
    // What the client has seen elsewhere has its place from here on.
    const last = await placeEvents(db, accountId);
    if (since === undefined) return { after: last, isGap: false };
    const sinceMs = parseIsoTime(since);
    if (sinceMs !== null) {
      // A pod's few events are judged one by one.
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
    /** The place is that of now, not of the first page. */
    async open(accountId: string, wish: FeedWish): Promise<FeedReader> {
      const { after, sinceMs, isGap } = await startOf(accountId, wish);
      const { podId } = wish;
      return { isGap, pages: (signal) => pages(accountId, after, { podId, sinceMs }, signal) };
    },
  };
}
