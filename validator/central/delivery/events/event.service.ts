/**
 * The event log of accounts and pods. Events are written in the transaction of the change that they record, and never
 * changed.
 */
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Actor } from '../../platform/identity.ts';
import {
  AccountEvent,
  EventPayload,
  type EventReason,
  type EventsQuery,
  type SubEventType,
} from './event.schemas.ts';
import {
  findEvent,
  insertEvent,
  listAccountEvents,
  listEventsOfPod,
  type StoredEvent,
} from './event.store.ts';

/**
 * Number of a pod's newest events that are searched for a request id; greater than the number that one request records.
 */
const NEWEST_EVENTS = 20;

export type RecordedEvent = {
  accountId: string;
  podId?: string | null;
  subEventType: SubEventType;
  actor: Actor;
  fromStatus?: string | null;
  toStatus?: string | null;
  reason?: EventReason | null;
  payload: EventPayload;
};

/** Default limit of a pod's events. */
const POD_EVENTS = 1_000;

/** Records an event with the present time. */
export async function recordEvent(
  tx: Db,
  { clock, random }: { clock: Clock; random: Random },
  event: RecordedEvent,
): Promise<void> {
  await insertEvent(tx, {
    id: random.uuid(),
    account_id: event.accountId,
    pod_id: event.podId ?? null,
    event_type: typeOf(event.subEventType),
    sub_event_type: event.subEventType,
    created_at: clock.now(),
    actor_auth: event.actor.auth,
    actor_api_key_id: event.actor.apiKeyId,
    request_id: event.actor.requestId,
    from_status: event.fromStatus ?? null,
    to_status: event.toStatus ?? null,
    reason: event.reason ?? null,
    payload_json: JSON.stringify(event.payload),
  });
}

/** An account's events, newest first. */
export async function listEventsOfAccount(
  db: Db,
  accountId: string,
  query: EventsQuery,
): Promise<AccountEvent[]> {
  return (await listAccountEvents(db, accountId, filterOf(query))).map(toAccountEvent);
}

/** A pod's events, oldest first, even after the pod has ended. The caller checks the owner. */
export async function listPodEvents(
  db: Db,
  podId: string,
  query?: EventsQuery,
): Promise<AccountEvent[]> {
  const filter = query === undefined ? { limit: POD_EVENTS } : filterOf(query);
  return (await listEventsOfPod(db, podId, filter)).map(toAccountEvent);
}

/** Returns undefined for an event of another account. */
export async function findAccountEvent(
  db: Db,
  accountId: string,
  id: string,
): Promise<AccountEvent | undefined> {
  const row = await findEvent(db, accountId, id);
  return row === undefined ? undefined : toAccountEvent(row);
}

/** The newest event of a pod. */
export async function lastPodEvent(db: Db, podId: string): Promise<AccountEvent | null> {
  const [newest] = await listEventsOfPod(db, podId, { limit: 1 });
  return newest === undefined ? null : toAccountEvent(newest);
}

/** Returns the id of the last request that changed the pod; null if none of the newest events has a request id. */
export async function newestRequestId(db: Db, podId: string): Promise<string | null> {
  const events = await listEventsOfPod(db, podId, { limit: NEWEST_EVENTS });
  return events.findLast(({ request_id }) => request_id !== null)?.request_id ?? null;
}

/** Returns the id of the request that last caused an event of this kind; null if there is no such request. */
export async function lastRequestId(
  db: Db,
  podId: string,
  subEventType: SubEventType,
): Promise<string | null> {
  const [newest] = await listEventsOfPod(db, podId, { limit: 1, subEventType });
  return newest?.request_id ?? null;
}

/** Returns the part of the subtype before the outcome. */
function typeOf(subEventType: SubEventType): string {
  return subEventType.slice(0, subEventType.lastIndexOf('.'));
}

function filterOf({ limit, since, before, pod_id, api_key_id }: EventsQuery) {
  return { limit, sinceMs: since, beforeId: before, podId: pod_id, apiKeyId: api_key_id };
}

const Auth = AccountEvent.shape.actor.shape.auth;

export function toAccountEvent(row: StoredEvent): AccountEvent {
  const event = EventPayload.parse(JSON.parse(row.payload_json));
  return {
    id: row.id,
    created_at: naiveUtc(row.created_at),
    event_type: row.event_type,
    sub_event_type: row.sub_event_type,
    pod_id: row.pod_id,
    pod_name: event.pod_name,
    actor: {
      auth: Auth.parse(row.actor_auth),
      api_key_id: row.actor_api_key_id,
      api_key_name: row.api_key_name,
    },
    from_status: row.from_status,
    to_status: row.to_status,
    reason: row.reason,
    detail: event.detail ?? null,
    error: event.error ?? null,
    request_id: row.request_id,
    event: { ...event, pod_name: event.pod_name ?? '', node: event.node ?? '' },
  };
}
