/** Queries of the webhooks table. */
import type { Insertable, Updateable } from 'kysely';
import type {
  WebhookDeliveriesTable,
  WebhooksTable,
} from '../../platform/database/tables/delivery.ts';
import type { Db, Webhook, WebhookDelivery } from '../../platform/database/tables.ts';

/** Stores one. */
export async function insertWebhook(db: Db, row: Insertable<WebhooksTable>): Promise<void> {
  await db.insertInto('webhooks').values(row).execute();
}

/** Oldest first. */
export function listWebhooks(db: Db, accountId: string): Promise<Webhook[]> {
  return db
    .selectFrom('webhooks')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('created_at')
    .orderBy('id')
    .execute();
}

/** Undefined for another account's. */
export function findWebhook(db: Db, accountId: string, id: string): Promise<Webhook | undefined> {
  return db
    .selectFrom('webhooks')
    .selectAll()
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .executeTakeFirst();
}

/** Changes one. */
export async function updateWebhook(
  db: Db,
  id: string,
  change: Updateable<WebhooksTable>,
): Promise<void> {
  await db.updateTable('webhooks').set(change).where('id', '=', id).execute();
}

/** Those with events that nobody has sent and no pause or other process in the way; the longest due first. */
export async function listReadyWebhooks(db: Db, nowMs: number, limit: number): Promise<Webhook[]> {
  return (
    db
      .selectFrom('webhooks')
      .selectAll()
      .where('is_enabled', '=', 1)
      .where('retry_at', '<=', nowMs)
      .where('lease_until', '<=', nowMs)
      // Two look-ups, each by an index of its own: what has its place in the feed, and what has none yet.
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

/** Takes the webhook for this process until then; undefined when another one has it, or it is not to be sent to. */
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

/** Notes what came of an attempt while the lease is held; false when it is another's by now, or the row has changed. */
export async function updateLeased(
  db: Db,
  { id, token }: Lease,
  seenAfter: number,
  change: Updateable<WebhooksTable>,
): Promise<boolean> {
  const done = await db
    .updateTable('webhooks')
    .set(change)
    .where('id', '=', id)
    .where('lease_token', '=', token)
    // A replay that was asked for meanwhile is not undone.
    .where('after_feed_no', '=', seenAfter)
    .executeTakeFirst();
  return done.numUpdatedRows > 0n;
}

/** Others may take it. */
export async function releaseWebhook(db: Db, { id, token }: Lease): Promise<void> {
  await db
    .updateTable('webhooks')
    .set({ lease_until: 0, lease_token: null })
    .where('id', '=', id)
    .where('lease_token', '=', token)
    .execute();
}

/** With its log. */
export async function deleteWebhooks(db: Db, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await db.deleteFrom('webhook_deliveries').where('webhook_id', 'in', ids).execute();
  await db.deleteFrom('webhooks').where('id', 'in', ids).execute();
}

// MERGED validator/central/delivery/webhooks/webhook.store.ts: Queries of the log of deliveries.
/** What the last attempt came to. */
export type DeliveryChange = Pick<
  WebhookDelivery,
  'state' | 'status' | 'error' | 'duration_ms' | 'updated_at'
>;

/** One more attempt at an event: the first makes the row, later ones change it. */
export async function noteAttempt(db: Db, row: Insertable<WebhookDeliveriesTable>): Promise<void> {
  const { state, status, error, duration_ms, updated_at } = row;
  await db
    .insertInto('webhook_deliveries')
    .values(row)
    .onConflict((conflict) =>
      conflict.columns(['webhook_id', 'event_id']).doUpdateSet((eb) => ({
        ...{ state, status, error, duration_ms, updated_at },
        attempts: eb('webhook_deliveries.attempts', '+', 1),
      })),
    )
    .execute();
}

/** Newest first. */
export function listDeliveries(
  db: Db,
  webhookId: string,
  { limit, state }: { limit: number; state?: WebhookDelivery['state'] | undefined },
): Promise<WebhookDelivery[]> {
  let query = db
    .selectFrom('webhook_deliveries')
    .selectAll()
    .where('webhook_id', '=', webhookId)
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .limit(limit);
  if (state !== undefined) query = query.where('state', '=', state);
  return query.execute();
}

/** Undefined for another webhook's. */
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

/** Removes what is older, whatever came of it. */
export async function deleteOldDeliveries(db: Db, beforeMs: number): Promise<void> {
  await db.deleteFrom('webhook_deliveries').where('created_at', '<', beforeMs).execute();
}
