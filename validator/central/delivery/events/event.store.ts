/** Queries on the events table, which only grows. The order of the feed is in event-feed.store.ts. */
import { notifyFrom } from '../../platform/database/notifier.ts';
import { insertOne, preparedEach, type Slots } from '../../platform/database/prepared.ts';
import type { Db, EventRow, NewEvent } from '../../platform/database/tables.ts';

/** An event with the name of the API key that caused it, even if the key was deleted. */
export type StoredEvent = EventRow & { api_key_name: string | null };

export type EventFilter = {
  limit: number;
  sinceMs?: number | undefined;
  /** Id of an event; an unknown id selects no event. */
  beforeId?: string | undefined;
  podId?: string | undefined;
  apiKeyId?: string | undefined;
  subEventType?: string | undefined;
};

/** Appends an event and notifies its account's streams. */
export async function insertEvent(db: Db, row: NewEvent): Promise<void> {
  await insertOne(db, 'events', row);
  notifyFrom(db, `events ${row.account_id}`);
}

type PageValues = { of: string; limit: number };

/** Events of an account or a pod that match the given members of a filter, newest first. */
const pageOf = (owner: 'account_id' | 'pod_id') =>
  preparedEach((db, { of, limit }: Slots<PageValues>, given) => {
    const { sinceMs, beforeId, podId, apiKeyId, subEventType } = given;
    return withKeyName(db)
      .where(`events.${owner}`, '=', of)
      .$if(sinceMs !== undefined, (query) =>
        query.where('events.created_at', '>=', sinceMs as never),
      )
      .$if(beforeId !== undefined, (query) =>
        query.where('events.seq', '<', (eb) =>
          eb
            .selectFrom('events as last')
            .select('last.seq')
            .where('last.id', '=', beforeId as never),
        ),
      )
      .$if(podId !== undefined, (query) => query.where('events.pod_id', '=', podId as never))
      .$if(apiKeyId !== undefined, (query) =>
        query.where('events.actor_api_key_id', '=', apiKeyId as never),
      )
      .$if(subEventType !== undefined, (query) =>
        query.where('events.sub_event_type', '=', subEventType as never),
      )
      .orderBy('events.seq', 'desc')
      .limit(limit);
  });
const pageOfAccount = pageOf('account_id');
const pageOfPod = pageOf('pod_id');

/** An account's events, newest first. */
export async function listAccountEvents(
  db: Db,
  accountId: string,
  { limit, ...filter }: EventFilter,
): Promise<StoredEvent[]> {
  return (await pageOfAccount(db, filter, { of: accountId, limit })).rows;
}

/** Returns the newest `limit` events of a pod, oldest first. */
export async function listEventsOfPod(
  db: Db,
  podId: string,
  { limit, ...filter }: EventFilter,
): Promise<StoredEvent[]> {
  return (await pageOfPod(db, filter, { of: podId, limit })).rows.toReversed();
}

/** Returns undefined for an event of another account. */
export function findEvent(db: Db, accountId: string, id: string): Promise<StoredEvent | undefined> {
  return withKeyName(db)
    .where('events.id', '=', id)
    .where('events.account_id', '=', accountId)
    .executeTakeFirst();
}

/** Events with the names of their keys. */
export function withKeyName(db: Db) {
  return db
    .selectFrom('events')
    .leftJoin('api_keys', 'api_keys.id', 'events.actor_api_key_id')
    .selectAll('events')
    .select('api_keys.name as api_key_name');
}
