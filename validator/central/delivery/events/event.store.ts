/** Queries on the events table, which only grows. The order of the feed is in event-feed.store.ts. */
import { notifyFrom } from '../../platform/database/notifier.ts';
import { insertOne } from '../../platform/database/prepared.ts';
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

/** An account's events, newest first. */
export function listAccountEvents(
  db: Db,
  accountId: string,
  filter: EventFilter,
): Promise<StoredEvent[]> {
  return filtered(withKeyName(db).where('events.account_id', '=', accountId), filter)
    .orderBy('events.seq', 'desc')
    .execute();
}

/** Returns the newest `limit` events of a pod, oldest first. */
export async function listEventsOfPod(
  db: Db,
  podId: string,
  filter: EventFilter,
): Promise<StoredEvent[]> {
  const newestFirst = await filtered(withKeyName(db).where('events.pod_id', '=', podId), filter)
    .orderBy('events.seq', 'desc')
    .execute();
  return newestFirst.reverse();
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

type Query = ReturnType<typeof withKeyName>;

function filtered(query: Query, filter: EventFilter): Query {
  const { limit, sinceMs, beforeId, podId, apiKeyId, subEventType } = filter;
  let narrowed = query.limit(limit);
  if (sinceMs !== undefined) narrowed = narrowed.where('events.created_at', '>=', sinceMs);
  if (beforeId !== undefined) {
    narrowed = narrowed.where('events.seq', '<', (eb) =>
      eb.selectFrom('events as last').select('last.seq').where('last.id', '=', beforeId),
    );
  }
  if (podId !== undefined) narrowed = narrowed.where('events.pod_id', '=', podId);
  if (apiKeyId !== undefined) narrowed = narrowed.where('events.actor_api_key_id', '=', apiKeyId);
  if (subEventType !== undefined) {
    narrowed = narrowed.where('events.sub_event_type', '=', subEventType);
  }
  return narrowed;
}
