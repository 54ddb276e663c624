/** Queries of the log of deliveries. */

import type { Insertable } from 'kysely';
import type { WebhookDeliveriesTable } from '../../platform/database/tables/delivery.ts';
import type { Db, WebhookDelivery } from '../../platform/database/tables.ts';

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
