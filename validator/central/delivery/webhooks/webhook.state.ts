/** Rules of webhooks: the state after an attempt to deliver an event, and the subscription to events. Pure. */

import { z } from 'zod';
import type { WebhooksTable } from '../../platform/database/tables/delivery.ts';
import type { Webhook } from '../../platform/database/tables.ts';
import { RETRY_PAUSES_MS } from '../../platform/retries.ts';
import type { AccountEvent } from '../events/event.schemas.ts';

/** Time after which a webhook whose deliveries all failed is disabled, when the last attempt for an event fails. */
const DISABLE_AFTER_MS = 5 * 24 * 60 * 60 * 1000;

/** HTTP 410: the receiver is permanently gone. */
const GONE = 410;

/** Status of the response; without a response, the reason. */
export type Attempt = { status: number | null; error: string | null; durationMs: number };

export type Progress = Pick<WebhooksTable, 'attempts' | 'retry_at' | 'failing_since'>;

export type Outcome =
  /** The event is finished: it was delivered, or its last attempt failed. */
  | { kind: 'next'; state: 'delivered' | 'failed'; progress: Progress }
  | { kind: 'retry'; progress: Progress }
  /** The event waits until the owner enables the webhook again. */
  | { kind: 'disable'; reason: 'gone' | 'failing'; progress: Progress };

/** Returns true if the receiver accepted the event. */
export function isDelivered({ status }: Attempt): boolean {
  return status !== null && status >= 200 && status < 300;
}

/** `attempts` is the number of attempts before this attempt. */
export function afterAttempt(
  attempt: Attempt,
  { attempts, failing_since: since }: Pick<Progress, 'attempts' | 'failing_since'>,
  nowMs: number,
): Outcome {
  if (isDelivered(attempt)) return { kind: 'next', state: 'delivered', progress: fresh(nowMs) };
  const failingSince = since ?? nowMs;
  const stopped = { attempts: 0, retry_at: nowMs, failing_since: failingSince };
  if (attempt.status === GONE) return { kind: 'disable', reason: 'gone', progress: stopped };
  const pauseMs = RETRY_PAUSES_MS[attempts];
  if (pauseMs !== undefined) {
    const progress = { ...stopped, attempts: attempts + 1, retry_at: nowMs + pauseMs };
    return { kind: 'retry', progress };
  }
  if (nowMs - failingSince < DISABLE_AFTER_MS) {
    return { kind: 'next', state: 'failed', progress: stopped };
  }
  return { kind: 'disable', reason: 'failing', progress: stopped };
}

/** Returns the progress of a webhook without failures. */
export function fresh(nowMs: number): Progress {
  return { attempts: 0, retry_at: nowMs, failing_since: null };
}

const Names = z.array(z.string());

/** Returns the event types to which the webhook subscribes; empty for all types. */
export function subscribedTypes({ events_json: json }: Pick<Webhook, 'events_json'>): string[] {
  return Names.parse(JSON.parse(json));
}

export function isSubscribed(
  webhook: Pick<Webhook, 'events_json'>,
  {
    event_type: type,
    sub_event_type: subType,
  }: Pick<AccountEvent, 'event_type' | 'sub_event_type'>,
): boolean {
  const types = subscribedTypes(webhook);
  return types.length === 0 || types.includes(type) || types.includes(subType);
}
