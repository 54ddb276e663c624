/** Webhooks on the wire. */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { CREATED_AT, PAGE, UPDATED_AT } from '../../platform/openapi/field-texts.ts';
import { PageQuery } from '../../platform/portal-answer.ts';
import {
  displayName,
  IsoTime,
  NaiveTime,
  optional,
  queryNumber,
  Uuid,
} from '../../platform/wire.ts';
import { AccountEvent, EVENT_OUTCOMES, EVENT_TYPES } from '../events/event.schemas.ts';

const MAX_URL_CHARS = 2_048;
const MAX_FILTERS = 50;
const MAX_DELIVERIES = 100;

/** An event type, or one of its outcomes: `pod-fail`, `backup.failed`. */
const EventName = z.enum([
  ...EVENT_TYPES,
  ...EVENT_TYPES.flatMap((type) => EVENT_OUTCOMES.map((outcome) => `${type}.${outcome}` as const)),
]);

const Filters = z.array(EventName).max(MAX_FILTERS);
const Url = z.string().trim().min(1).max(MAX_URL_CHARS);

export const CreateWebhook = z
  .object(
    described(
      { url: Url, description: optional(displayName(200)), events: optional(Filters) },
      {
        url: 'Address that receives the events by `POST`. The address must be https and public, unless the operator allows other addresses.',
        description: "Description for the account's own use; absent for none.",
        events:
          'Event types (`pod-fail`) or outcomes (`backup.failed`) to send; absent or empty for all.',
      },
    ),
  )
  .meta({
    id: 'CreateWebhook',
    example: {
      url: 'https://hooks.example.com/podwright',
      description: 'alerts',
      events: ['pod-fail', 'backup.failed'],
    },
  });
export type CreateWebhook = z.output<typeof CreateWebhook>;

export const UpdateWebhook = z
  .object(
    described(
      {
        url: optional(Url),
        description: optional(displayName(200)),
        events: optional(Filters),
        enabled: optional(z.boolean()),
      },
      {
        url: 'New address; absent or null leaves it unchanged.',
        description: 'New description; absent or null leaves it unchanged.',
        events:
          'New event types; an empty list selects all types; absent or null leaves the list unchanged.',
        enabled:
          'False stops deliveries; true resumes them with the event at which they stopped. Absent or null changes nothing.',
      },
    ),
  )
  .meta({ id: 'UpdateWebhook', example: { events: [], enabled: true } });
export type UpdateWebhook = z.output<typeof UpdateWebhook>;

export const Webhook = z
  .object(
    described(
      {
        id: z.uuid(),
        url: z.string(),
        description: z.string(),
        events: z.array(z.string()),
        enabled: z.boolean(),
        disabled_reason: z.enum(['gone', 'failing']).nullable(),
        failing_since: NaiveTime.nullable(),
        next_attempt_at: NaiveTime.nullable(),
        created_at: NaiveTime,
        updated_at: NaiveTime,
      },
      {
        id: 'Id of the webhook.',
        url: 'Address that receives the events.',
        description: "Description for the account's own use; empty for none.",
        events: 'Event types or outcomes that are sent; empty for all.',
        enabled: 'True if events are sent.',
        disabled_reason:
          'Why the marketplace stopped deliveries: `gone` after an answer 410, `failing` after days of failures; null if the marketplace did not stop deliveries.',
        failing_since:
          'Time of the first failure since the last success (UTC); null if the last delivery succeeded.',
        next_attempt_at: 'Time of the next attempt (UTC); null if no event is waiting for a retry.',
        created_at: CREATED_AT,
        updated_at: UPDATED_AT,
      },
    ),
  )
  .meta({ id: 'Webhook' });
export type Webhook = z.output<typeof Webhook>;

/** Webhook with its secret. Returned when the webhook is created and when its secret is rotated. */
export const WebhookWithSecret = Webhook.extend(
  described(
    { secret: z.string() },
    { secret: 'Secret that signs deliveries (`whsec_…`). Only this answer contains the secret.' },
  ),
).meta({
  id: 'WebhookWithSecret',
});
export type WebhookWithSecret = z.output<typeof WebhookWithSecret>;

export const DeliveryParams = z.object({ id: Uuid, delivery_id: Uuid });

export const DeliveriesQuery = z
  .object(
    described(
      {
        page: PageQuery.shape.page,
        limit: queryNumber(z.int().min(1).max(MAX_DELIVERIES).default(MAX_DELIVERIES)),
        state: optional(z.enum(['waiting', 'delivered', 'failed'])),
      },
      {
        page: PAGE,
        limit: 'Maximum number of deliveries per page, 1 to 100.',
        state: 'Only deliveries in this state.',
      },
    ),
  )
  .meta({ example: { page: 1, limit: 10, state: 'failed' } });
export type DeliveriesQuery = z.output<typeof DeliveriesQuery>;

export const WebhookDelivery = z
  .object(
    described(
      {
        id: z.uuid(),
        event_id: z.uuid(),
        type: z.string(),
        state: z.enum(['waiting', 'delivered', 'failed']),
        attempts: z.int(),
        status: z.int().nullable(),
        error: z.string().nullable(),
        duration_ms: z.int(),
        created_at: NaiveTime,
        updated_at: NaiveTime,
      },
      {
        id: 'Id of the delivery.',
        event_id: 'Id of the event, which a receiver uses to recognise a repeat.',
        type: 'Subject and outcome of the event, for example `backup.failed`.',
        state: 'State: the event waits for its next attempt, was delivered, or failed for good.',
        attempts: 'Number of attempts so far.',
        status: 'HTTP status of the last answer; null without an answer.',
        error: 'Reason for which the last attempt failed; null if it succeeded.',
        duration_ms: 'Duration of the last attempt in milliseconds.',
        created_at: 'Time of the first attempt (UTC).',
        updated_at: 'Time of the last attempt (UTC).',
      },
    ),
  )
  .meta({ id: 'WebhookDelivery' });
export type WebhookDelivery = z.output<typeof WebhookDelivery>;

/** Replay request: all events since this time are sent again, in order. */
export const ReplayWebhook = z
  .object(
    described(
      { since: IsoTime },
      {
        since:
          'Every event at or after this time is sent again, in order (ISO 8601; UTC without an offset).',
      },
    ),
  )
  .meta({ id: 'ReplayWebhook', example: { since: '2026-11-01T00:00:00Z' } });
export type ReplayWebhook = z.output<typeof ReplayWebhook>;

/** Body of a delivery, in the form that Standard Webhooks recommends. */
export const WebhookMessage = z
  .object({ type: z.string(), timestamp: NaiveTime, data: AccountEvent })
  .meta({ id: 'WebhookMessage' });
export type WebhookMessage = z.output<typeof WebhookMessage>;
