/**
 * An account's events in the order of its feed, which is the order in which they became visible.
 *
 * The order of `seq` differs: PostgreSQL assigns `seq` at the insert, and a transaction with a lower number may commit
 * after a transaction with a higher number. A reader that continued after the higher number would miss the event with
 * the lower number. Therefore the next reader of the feed assigns the event's place (`feed_no`) after the commit, one
 * reader at a time. Writers of events do not wait for their places, and a slow transaction does not delay other events.
 */

import type { Database, Db, EventRow } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import { type StoredEvent, withKeyName } from './event.store.ts';

export type FeedEvent = StoredEvent & { feed_no: number };
export type FeedFilter = { podId?: string | undefined; sinceMs?: number | undefined };
/** Places in a feed that are greater than `after` and at most `upTo`. */
export type FeedSpan = { after: number; upTo: number };

/** Maximum number of events that get a place in one transaction. */
const PLACED_AT_ONCE = 1_000;

/** Assigns places to all visible events. Returns the last place; 0 for an empty feed. */
export async function placeEvents(db: Database, accountId: string): Promise<number> {
  for (;;) {
    if ((await firstUnplaced(db, accountId)) === undefined) return lastPlace(db, accountId);
    const placed = await db.transaction().execute((tx) => placeSome(tx, accountId));
    if (placed.count < PLACED_AT_ONCE) return placed.last;
  }
}

function firstUnplaced(db: Db, accountId: string) {
  return db
    .selectFrom('events')
    .select('seq')
    .where('account_id', '=', accountId)
    .where('feed_no', 'is', null)
    .limit(1)
    .executeTakeFirst();
}

async function lastPlace(db: Db, accountId: string): Promise<number> {
  const { last } = await db
    .selectFrom('events')
    .select((eb) => eb.fn.max('feed_no').as('last'))
    .where('account_id', '=', accountId)
    .where('feed_no', 'is not', null)
    .executeTakeFirstOrThrow();
  return last ?? 0;
}

async function placeSome(tx: Db, accountId: string): Promise<{ last: number; count: number }> {
  await lockRow(tx, 'accounts', accountId);
  const last = await lastPlace(tx, accountId);
  const unplaced = tx
    .selectFrom('events')
    .select((eb) => [
      'seq',
      eb.fn
        .agg<number>('row_number')
        .over((over) => over.orderBy('seq'))
        .as('rank'),
    ])
    .where('account_id', '=', accountId)
    .where('feed_no', 'is', null)
    .orderBy('seq')
    .limit(PLACED_AT_ONCE)
    .as('unplaced');
  const { numUpdatedRows } = await tx
    .updateTable('events')
    .from(unplaced)
    .set((eb) => ({ feed_no: eb('unplaced.rank', '+', last) }))
    .whereRef('events.seq', '=', 'unplaced.seq')
    .executeTakeFirst();
  const count = Number(numUpdatedRows);
  return { last: last + count, count };
}

/** Returns events in the order of the feed; fewer than `limit` if the span has no more. */
export async function readFeed(
  db: Db,
  accountId: string,
  { after, upTo }: FeedSpan,
  { podId, sinceMs }: FeedFilter,
  limit: number,
): Promise<FeedEvent[]> {
  let query = withKeyName(db)
    .where('events.account_id', '=', accountId)
    .where('events.feed_no', '>', after)
    .where('events.feed_no', '<=', upTo)
    .orderBy('events.feed_no')
    .limit(limit);
  if (podId !== undefined) query = query.where('events.pod_id', '=', podId);
  if (sinceMs !== undefined) query = query.where('events.created_at', '>=', sinceMs);
  return query.$narrowType<{ feed_no: number }>().execute();
}

/** Returns the place of an event of the account; null if the account has no such event. Call `placeEvents` first. */
export async function findPlace(db: Db, accountId: string, id: EventRow['id']) {
  const row = await db
    .selectFrom('events')
    .select('feed_no')
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .executeTakeFirst();
  return row?.feed_no ?? null;
}

/**
 * Returns the place of the first event at or after a time; null if there is no such event. Call `placeEvents` first.
 */
export async function findPlaceInTime(
  db: Db,
  accountId: string,
  sinceMs: number,
): Promise<number | null> {
  const { first } = await db
    .selectFrom('events')
    // The sum makes the database use the index by time instead of the index by place.
    .select((eb) => eb.fn.min<number | null>(eb('feed_no', '+', 0)).as('first'))
    .where('account_id', '=', accountId)
    .where('created_at', '>=', sinceMs)
    .where('feed_no', 'is not', null)
    .executeTakeFirstOrThrow();
  return first;
}
