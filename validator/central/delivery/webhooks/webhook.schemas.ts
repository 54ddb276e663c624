/** Webhooks on the wire. */
import { z } from 'zod';
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
  .object({
    url: Url,
    description: optional(displayName(200)),
    /** All event types if absent or empty. */
    events: optional(Filters),
  })
  .meta({ id: 'CreateWebhook' });
export type CreateWebhook = z.output<typeof CreateWebhook>;

export const UpdateWebhook = z
  .object({
    url: optional(Url),
    description: optional(displayName(200)),
    events: optional(Filters),
    /** True resumes delivery where it stopped. */
    enabled: optional(z.boolean()),
  })
  .meta({ id: 'UpdateWebhook' });
export type UpdateWebhook = z.output<typeof UpdateWebhook>;

export const Webhook = z
  .object({
    id: z.uuid(),
    url: z.string(),
    description: z.string(),
    events: z.array(z.string()),
    enabled: z.boolean(),
    /** `gone`: the receiver answered 410. `failing`: all deliveries failed for days. */
    disabled_reason: z.enum(['gone', 'failing']).nullable(),
    failing_since: NaiveTime.nullable(),
    next_attempt_at: NaiveTime.nullable(),
    created_at: NaiveTime,
    updated_at: NaiveTime,
  })
  .meta({ id: 'Webhook' });
export type Webhook = z.output<typeof Webhook>;

/** The secret is shown only when it is created. */
export const WebhookWithSecret = Webhook.extend({ secret: z.string() }).meta({
  id: 'WebhookWithSecret',
});
export type WebhookWithSecret = z.output<typeof WebhookWithSecret>;

export const DeliveryParams = z.object({ id: Uuid, delivery_id: Uuid });

export const DeliveriesQuery = z.object({
  limit: queryNumber(z.int().min(1).max(MAX_DELIVERIES).default(MAX_DELIVERIES)),
  state: optional(z.enum(['waiting', 'delivered', 'failed'])),
});
export type DeliveriesQuery = z.output<typeof DeliveriesQuery>;

export const WebhookDelivery = z
  .object({
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
  })
  .meta({ id: 'WebhookDelivery' });
export type WebhookDelivery = z.output<typeof WebhookDelivery>;

/** All events since this time are sent again, in order. */
export const ReplayWebhook = z.object({ since: IsoTime }).meta({ id: 'ReplayWebhook' });
export type ReplayWebhook = z.output<typeof ReplayWebhook>;

/** Body of a delivery, in the form that Standard Webhooks recommends. */
export const WebhookMessage = z
  .object({ type: z.string(), timestamp: NaiveTime, data: AccountEvent })
  .meta({ id: 'WebhookMessage' });
export type WebhookMessage = z.output<typeof WebhookMessage>;
