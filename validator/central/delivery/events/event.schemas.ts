/** Events of accounts and pods on the wire. */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
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

/** Subject of an event. Members that are not listed here are also stored and returned. */
export const EventPayload = z.looseObject(
  described(
    {
      pod_name: z.string().nullable(),
      node: z.string().nullable(),
      error: z.string().nullish(),
      detail: z.string().nullish(),
    },
    {
      pod_name: 'Name of the pod; null for an event of the account.',
      node: 'Id of the node; null if no node is concerned.',
      error: 'Description of the failure, as a sentence; null or absent if nothing failed.',
      detail: 'Further detail, as a sentence; null or absent for none.',
    },
  ),
);
export type EventPayload = z.output<typeof EventPayload>;

export const AccountEvent = z
  .object(
    described(
      {
        id: z.uuid(),
        created_at: NaiveTime,
        event_type: z.string(),
        sub_event_type: z.string(),
        pod_id: z.uuid().nullable(),
        pod_name: z.string().nullable(),
        actor: z.object(
          described(
            {
              auth: z.enum(['session', 'api_key', 'provider', 'validator', 'system']),
              api_key_id: z.uuid().nullable(),
              api_key_name: z.string().nullable(),
            },
            {
              auth: 'Credential or party that acted: a session or API key of the account, the provider, a validator, or the marketplace itself (`system`).',
              api_key_id: 'Id of the API key that acted; null for other actors.',
              api_key_name: 'Name of the API key that acted; null for other actors.',
            },
          ),
        ),
        from_status: z.string().nullable(),
        to_status: z.string().nullable(),
        reason: z.string().nullable(),
        detail: z.string().nullable(),
        error: z.string().nullable(),
        request_id: z.string().nullable(),
        event: EventPayload.extend(
          described(
            { pod_name: z.string(), node: z.string() },
            {
              pod_name: 'Name of the pod; empty for an event of the account.',
              node: 'Id of the node; empty if no node is concerned.',
            },
          ),
        ),
      },
      {
        id: 'Id of the event.',
        created_at: 'Time of the event (UTC).',
        event_type: 'Subject of the event, for example `pod-create`, `backup` or `billing`.',
        sub_event_type:
          'Subject and outcome, for example `backup.failed`; outcomes are `requested`, `success`, `failed` and `status`.',
        pod_id: 'Id of the pod; null for an event of the account.',
        pod_name: 'Name of the pod when the event happened; null for an event of the account.',
        actor: 'Credential or party that caused the event.',
        from_status: 'Status of the pod before the event; null if the status did not change.',
        to_status: 'Status of the pod after the event; null if the status did not change.',
        reason:
          'Reason of the event, for example `user_initiated`, `balance_exhausted` or `provider_notice`; null if there is no particular reason.',
        detail: 'Further detail, as a sentence; null for none.',
        error: 'Description of the failure, as a sentence; null if nothing failed.',
        request_id: 'Id of the request that caused the event; null if no request did.',
        event:
          'Subject of the event as it was stored, which may have further members. Pod name and node are empty for an event that concerns no pod or node.',
      },
    ),
  )
  .meta({ id: 'AccountEvent' });
export type AccountEvent = z.output<typeof AccountEvent>;

const MAX_EVENTS = 1_000;
const DEFAULT_EVENTS = 100;

/** Filters of GET /users/me/events and GET /pods/{id}/events. */
export const EventsQuery = z
  .object(
    described(
      {
        limit: queryNumber(z.int().min(1).max(MAX_EVENTS).default(DEFAULT_EVENTS)),
        since: optional(IsoTime),
        before: optional(Uuid),
        pod_id: optional(Uuid),
        api_key_id: optional(Uuid),
      },
      {
        limit: 'Maximum number of events, 1 to 1000.',
        since: 'Only events at or after this time (ISO 8601; UTC without an offset).',
        before:
          'Id of an event: only older events, for the next page. No event is older than an unknown event.',
        pod_id: 'Only events of this pod.',
        api_key_id: 'Only events that this API key caused.',
      },
    ),
  )
  .meta({ example: { limit: 20, since: '2026-11-01T00:00:00Z' } });
export type EventsQuery = z.output<typeof EventsQuery>;
