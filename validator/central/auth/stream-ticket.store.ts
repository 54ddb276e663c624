/** Queries of the stream_tickets table. */
import type { Insertable, Selectable } from 'kysely';
import type { Db, StreamTicketsTable } from '../db/tables.ts';

export type StoredTicket = Selectable<StreamTicketsTable>;

/** Stores a ticket's hash, and what it stands for. */
export async function insertTicket(db: Db, row: Insertable<StreamTicketsTable>): Promise<void> {
  await db.insertInto('stream_tickets').values(row).execute();
}

/** Unused ones that still live: the account's, and all. */
export async function countTickets(
  db: Db,
  accountId: string,
  nowMs: number,
): Promise<{ own: number; all: number }> {
  const { own, all } = await db
    .selectFrom('stream_tickets')
    .select((eb) => [
      eb.fn.countAll<number>().filterWhere('account_id', '=', accountId).as('own'),
      eb.fn.countAll<number>().as('all'),
    ])
    .where('expires_at', '>', nowMs)
    .executeTakeFirstOrThrow();
  return { own, all };
}

/** Takes a ticket away: whoever gets it is the only one. */
export function takeTicket(db: Db, hash: string): Promise<StoredTicket | undefined> {
  return db
    .deleteFrom('stream_tickets')
    .where('ticket_hash', '=', hash)
    .returningAll()
    .executeTakeFirst();
}

/** Removes what has run out. */
export async function deleteExpiredTickets(db: Db, nowMs: number): Promise<void> {
  await db.deleteFrom('stream_tickets').where('expires_at', '<=', nowMs).execute();
}
