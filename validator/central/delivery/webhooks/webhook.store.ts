/** Queries on webhooks and the log of their deliveries. */
import type { Insertable, Updateable } from 'kysely';
import type {
  WebhookDeliveriesTable,
  WebhooksTable,
} from '../../platform/database/tables/delivery.ts';
import type { Db, Webhook, WebhookDelivery } from '../../platform/database/tables.ts';

export async function insertWebhook(db: Db, row: Insertable<WebhooksTable>): Promise<void> {
  await db.insertInto('webhooks').values(row).execute();
}

/** Returns an account's webhooks, oldest first. */
export function listWebhooks(db: Db, accountId: string): Promise<Webhook[]> {
  return db
    .selectFrom('webhooks')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('created_at')
    .orderBy('id')
    .execute();
}

/** Returns undefined for a webhook of another account. */
export function findWebhook(db: Db, accountId: string, id: string): Promise<Webhook | undefined> {
  return db
    .selectFrom('webhooks')
    .selectAll()
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .executeTakeFirst();
}

export async function updateWebhook(
  db: Db,
  id: string,
  change: Updateable<WebhooksTable>,
): Promise<void> {
  await db.updateTable('webhooks').set(change).where('id', '=', id).execute();
}

/** Returns enabled webhooks that have unsent events and that no pause or lease delays; the longest overdue first. */
export async function listReadyWebhooks(db: Db, nowMs: number, limit: number): Promise<Webhook[]> {
  return (
    db
      .selectFrom('webhooks')
      .selectAll()
      .where('is_enabled', '=', 1)
      .where('retry_at', '<=', nowMs)
      .where('lease_until', '<=', nowMs)
      // Each of the two queries uses an index: one for events with a place in the feed, the other for events without a
      // place.
      .where(({ or, exists, selectFrom }) =>
        or([
          exists(
            selectFrom('events')
              .select('events.seq')
              .whereRef('events.account_id', '=', 'webhooks.account_id')
              .whereRef('events.feed_no', '>', 'webhooks.after_feed_no')
              .where('events.feed_no', 'is not', null),
          ),
          exists(
            selectFrom('events')
              .select('events.seq')
              .whereRef('events.account_id', '=', 'webhooks.account_id')
              .where('events.feed_no', 'is', null),
          ),
        ]),
      )
      .orderBy('retry_at')
      .limit(limit)
      .execute()
  );
}

export type Lease = { id: string; token: string };

/**
 * Leases the webhook until `untilMs`. Returns undefined if another process holds the lease, or if no event may be sent
 * now.
 */
export function leaseWebhook(
  db: Db,
  { id, token }: Lease,
  { nowMs, untilMs }: { nowMs: number; untilMs: number },
): Promise<Webhook | undefined> {
  return db
    .updateTable('webhooks')
    .set({ lease_until: untilMs, lease_token: token })
    .where('id', '=', id)
    .where('is_enabled', '=', 1)
    .where('retry_at', '<=', nowMs)
    .where((eb) => eb.or([eb('lease_until', '<=', nowMs), eb('lease_token', '=', token)]))
    .returningAll()
    .executeTakeFirst();
}

/** Updates a leased webhook. Returns false if the lease was lost or `after_feed_no` has changed. */
export async function updateLeased(
  db: Db,
  { id, token }: Lease,
  readAfter: number,
  change: Updateable<WebhooksTable>,
): Promise<boolean> {
  const done = await db
    .updateTable('webhooks')
    .set(change)
    .where('id', '=', id)
    .where('lease_token', '=', token)
    // If a replay was requested after the row was read, this update must not undo the replay.
    .where('after_feed_no', '=', readAfter)
    .executeTakeFirst();
  return done.numUpdatedRows > 0n;
}

export async function releaseWebhook(db: Db, { id, token }: Lease): Promise<void> {
  await db
    .updateTable('webhooks')
    .set({ lease_until: 0, lease_token: null })
    .where('id', '=', id)
    .where('lease_token', '=', token)
    .execute();
}

/** Deletes webhooks and their deliveries. */
export async function deleteWebhooks(db: Db, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await db.deleteFrom('webhook_deliveries').where('webhook_id', 'in', ids).execute();
  await db.deleteFrom('webhooks').where('id', 'in', ids).execute();
}

export type DeliveryChange = Pick<
  WebhookDelivery,
  'state' | 'status' | 'error' | 'duration_ms' | 'updated_at'
>;

/** Stores one more attempt: inserts the delivery's row, or updates it and counts the attempt. */
export async function storeAttempt(db: Db, row: Insertable<WebhookDeliveriesTable>): Promise<void> {
  const { state, status, error, duration_ms, updated_at } = row;
  await db
    .insertInto('webhook_deliveries')
    .values(row)
    .onConflict((conflict) =>
      conflict.columns(['webhook_id', 'event_id']).doUpdateSet((eb) => ({
        state,
        status,
        error,
        duration_ms,
        updated_at,
        attempts: eb('webhook_deliveries.attempts', '+', 1),
      })),
    )
    .execute();
}

/** Returns a page of the deliveries, newest first. `page` counts from 1. */
export function listDeliveries(
  db: Db,
  webhookId: string,
  query: { page: number; limit: number; state?: WebhookDelivery['state'] | undefined },
): Promise<WebhookDelivery[]> {
  const { page, limit, state } = query;
  let deliveries = db
    .selectFrom('webhook_deliveries')
    .selectAll()
    .where('webhook_id', '=', webhookId)
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .offset((page - 1) * limit)
    .limit(limit);
  if (state !== undefined) deliveries = deliveries.where('state', '=', state);
  return deliveries.execute();
}

/** Returns undefined for a delivery of another webhook. */
export function findDelivery(
  db: Db,
  webhookId: string,
  id: string,
): Promise<WebhookDelivery | undefined> {
  return db
    .selectFrom('webhook_deliveries')
    .selectAll()
    .where('id', '=', id)
    .where('webhook_id', '=', webhookId)
    .executeTakeFirst();
}

export async function deleteOldDeliveries(db: Db, beforeMs: number): Promise<void> {
  await db.deleteFrom('webhook_deliveries').where('created_at', '<', beforeMs).execute();
}
