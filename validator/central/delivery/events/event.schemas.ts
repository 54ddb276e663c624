/** Events of accounts and pods on the wire. */
import { z } from 'zod';
import { IsoTime, NaiveTime, optional, queryNumber, Uuid } from '../../platform/wire.ts';

export const EVENT_TYPES = [
  'pod-create',
  'pod-rent',
  'pod-lifecycle',
  'pod-reboot',
  'pod-delete',
  'pod-fail',
  'backup',
  'restore',
  'billing',
  'notice',
  'account',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

export const EVENT_OUTCOMES = ['requested', 'success', 'failed', 'status'] as const;
export type SubEventType = `${EventType}.${(typeof EVENT_OUTCOMES)[number]}`;

export const EVENT_REASONS = [
  'user_initiated',
  'scheduled_termination',
  'balance_exhausted',
  'max_spend_reached',
  'idle_shutdown',
  'provider_notice',
  'provider_fault',
  'node_removed',
  'image_pull_failed',
  'build_failed',
  'start_failed',
  'health_failed',
] as const;
export type EventReason = (typeof EVENT_REASONS)[number];

/** Subject of an event. Members that are not listed are stored and returned too. */
export const EventPayload = z.looseObject({
  pod_name: z.string().nullable(),
  /** The executor's id. */
  node: z.string().nullable(),
  error: z.string().nullish(),
  detail: z.string().nullish(),
});
export type EventPayload = z.output<typeof EventPayload>;

export const AccountEvent = z
  .object({
    id: z.uuid(),
    created_at: NaiveTime,
    event_type: z.string(),
    sub_event_type: z.string(),
    pod_id: z.uuid().nullable(),
    pod_name: z.string().nullable(),
    actor: z.object({
      auth: z.enum(['session', 'api_key', 'provider', 'validator', 'system']),
      api_key_id: z.uuid().nullable(),
      api_key_name: z.string().nullable(),
    }),
    from_status: z.string().nullable(),
    to_status: z.string().nullable(),
    reason: z.string().nullable(),
    detail: z.string().nullable(),
    error: z.string().nullable(),
    request_id: z.string().nullable(),
    event: EventPayload,
  })
  .meta({ id: 'AccountEvent' });
export type AccountEvent = z.output<typeof AccountEvent>;

const MAX_EVENTS = 1_000;
const DEFAULT_EVENTS = 100;

/** Filters of GET /users/me/events and GET /pods/{id}/events. */
export const EventsQuery = z.object({
  limit: queryNumber(z.int().min(1).max(MAX_EVENTS).default(DEFAULT_EVENTS)),
  since: optional(IsoTime),
  pod_id: optional(Uuid),
  api_key_id: optional(Uuid),
});
export type EventsQuery = z.output<typeof EventsQuery>;
