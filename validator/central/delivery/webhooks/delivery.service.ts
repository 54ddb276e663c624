/** The log of a webhook's deliveries, and the replay of one delivery. */

import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { createSemaphore } from '#shared/runtime/semaphore.ts';
import type { Database, WebhookDelivery as DeliveryRow } from '../../platform/database/tables.ts';
import type { UserIdentity } from '../../platform/identity.ts';
import type { PostWebhook } from '../../platform/ports.ts';
import { findAccountEvent } from '../events/event.service.ts';
import type { DeliveriesQuery, WebhookDelivery } from './webhook.schemas.ts';
import { requireWebhook } from './webhook.service.ts';
import { isDelivered } from './webhook.state.ts';
import { findDelivery, listDeliveries, storeAttempt } from './webhook.store.ts';
import type { WebhookSecrets } from './webhook-message.ts';

/** Maximum number of concurrent replays in the process; others wait. */
const CONCURRENCY = 8;

export type DeliveriesDeps = {
  db: Database;
  clock: Clock;
  secrets: WebhookSecrets;
  post: PostWebhook;
  stopping: AbortSignal;
};

export type Deliveries = ReturnType<typeof createDeliveries>;

export function createDeliveries({ db, clock, secrets, post, stopping }: DeliveriesDeps) {
  const replays = createSemaphore(CONCURRENCY);

  async function required(accountId: string, webhookId: string, id: string) {
    const webhook = await requireWebhook(db, accountId, webhookId);
    const delivery = await findDelivery(db, webhookId, id);
    const event =
      delivery === undefined ? undefined : await findAccountEvent(db, accountId, delivery.event_id);
    if (delivery !== undefined && event !== undefined) return { webhook, delivery, event };
    throw new ApiError('not_found', 'This webhook has no such delivery');
  }

  return {
    /** Returns the deliveries, newest first. */
    async list(
      { accountId }: UserIdentity,
      webhookId: string,
      query: DeliveriesQuery,
    ): Promise<WebhookDelivery[]> {
      await requireWebhook(db, accountId, webhookId);
      return (await listDeliveries(db, webhookId, query)).map(toResponse);
    },

    /** Makes one attempt now, even for a disabled webhook, and returns its result. */
    async replay(
      { accountId }: UserIdentity,
      webhookId: string,
      id: string,
    ): Promise<WebhookDelivery> {
      const { webhook, delivery, event } = await required(accountId, webhookId, id);
      const attempt = await replays.run(
        () => post(secrets.request(webhook, event, clock.now()), stopping),
        stopping,
      );
      const change = {
        // An event that was delivered before keeps the state `delivered`.
        state: isDelivered(attempt) ? ('delivered' as const) : delivery.state,
        status: attempt.status,
        error: attempt.error,
        duration_ms: attempt.durationMs,
        updated_at: clock.now(),
      };
      await storeAttempt(db, { ...delivery, ...change, attempts: 1 });
      return toResponse({ ...delivery, ...change, attempts: delivery.attempts + 1 });
    },
  };
}

function toResponse(row: DeliveryRow): WebhookDelivery {
  return {
    id: row.id,
    event_id: row.event_id,
    type: row.event_type,
    state: row.state,
    attempts: row.attempts,
    status: row.status,
    error: row.error,
    duration_ms: row.duration_ms,
    created_at: naiveUtc(row.created_at),
    updated_at: naiveUtc(row.updated_at),
  };
}
