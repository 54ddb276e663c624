/** What becomes of a webhook and of an event after an attempt to deliver it (marketplace reference 1.14). Pure. */

import { z } from 'zod';
import type { WebhooksTable } from '../../platform/database/tables/delivery.ts';
import type { Webhook } from '../../platform/database/tables.ts';
import { RETRY_PAUSES_MS } from '../../platform/retries.ts';
import type { AccountEvent } from '../events/event.schemas.ts';

/** A webhook that took nothing for so long is disabled when an event is given up. */
const HOPELESS_MS = 5 * 24 * 60 * 60 * 1000;

/** HTTP 410: the receiver says that it will never be back. */
const GONE = 410;

/** The answer's status, or why there was none. */
export type Attempt = { status: number | null; error: string | null; durationMs: number };

export type Progress = Pick<WebhooksTable, 'attempts' | 'retry_at' | 'failing_since'>;

export type Outcome =
  /** The event is done with: delivered, or given up. */
  | { kind: 'next'; state: 'delivered' | 'failed'; progress: Progress }
  | { kind: 'retry'; progress: Progress }
  /** The event waits until the owner enables the webhook again. */
  | { kind: 'disable'; reason: 'gone' | 'failing'; progress: Progress };

/** Whether the receiver has taken it. */
export function isDelivered({ status }: Attempt): boolean {
  return status !== null && status >= 200 && status < 300;
}

/** `attempts` counts those before the present one. */
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
  if (nowMs - failingSince < HOPELESS_MS) {
    return { kind: 'next', state: 'failed', progress: stopped };
  }
  return { kind: 'disable', reason: 'failing', progress: stopped };
}

/** Nothing has gone wrong. */
export function fresh(nowMs: number): Progress {
  return { attempts: 0, retry_at: nowMs, failing_since: null };
}

// MERGED validator/central/delivery/webhooks/webhook.state.ts: Which events a webhook is told of. Pure.
const Names = z.array(z.string());

/** The types that its owner named; none: all. */
export function wishesOf({ events_json: json }: Pick<Webhook, 'events_json'>): string[] {
  return Names.parse(JSON.parse(json));
}

export function wantsEvent(
  webhook: Pick<Webhook, 'events_json'>,
  {
    event_type: type,
    sub_event_type: subType,
  }: Pick<AccountEvent, 'event_type' | 'sub_event_type'>,
): boolean {
  const wishes = wishesOf(webhook);
  return wishes.length === 0 || wishes.includes(type) || wishes.includes(subType);
}
