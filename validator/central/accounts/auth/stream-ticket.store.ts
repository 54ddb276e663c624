/** Queries of the stream_tickets table. */

import type { Insertable, Selectable } from 'kysely';
import type { StreamTicketsTable } from '../../platform/database/tables/delivery.ts';
import type { Db } from '../../platform/database/tables.ts';

export type StoredTicket = Selectable<StreamTicketsTable>;

export async function insertTicket(db: Db, row: Insertable<StreamTicketsTable>): Promise<void> {
  await db.insertInto('stream_tickets').values(row).execute();
}

/** Counts unused tickets that have not expired, of the account and of all accounts. */
export async function countTickets(
  db: Db,
  accountId: string,
  nowMs: number,
): Promise<{ own: number; all: number }> {
  const live = db
    .selectFrom('stream_tickets')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('expires_at', '>', nowMs);
  // Two queries, because they use different indexes.
  const own = await live.where('account_id', '=', accountId).executeTakeFirstOrThrow();
  const all = await live.executeTakeFirstOrThrow();
  return { own: own.count, all: all.count };
}

/** Deletes and returns a ticket, so that only one caller can redeem it. */
export function redeemTicket(db: Db, hash: string): Promise<StoredTicket | undefined> {
  return db
    .deleteFrom('stream_tickets')
    .where('ticket_hash', '=', hash)
    .returningAll()
    .executeTakeFirst();
}

export async function deleteExpiredTickets(db: Db, nowMs: number): Promise<void> {
  await db.deleteFrom('stream_tickets').where('expires_at', '<=', nowMs).execute();
}
