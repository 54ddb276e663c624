/** Queries of the log_in_tickets table. */
import type { Selectable } from 'kysely';
import type { LogInTicketsTable } from '../../platform/database/tables/accounts.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { SessionSubject } from './session.store.ts';

export type LogInTicket = Selectable<LogInTicketsTable>;

export async function insertLogInTicket(tx: Db, row: LogInTicket): Promise<void> {
  await tx.insertInto('log_in_tickets').values(row).execute();
}

/** Deletes the tickets of a subject except the newest `retained`. */
export async function deleteOlderTickets(
  tx: Db,
  { kind, subject_id }: SessionSubject,
  retained: number,
): Promise<void> {
  const older = await tx
    .selectFrom('log_in_tickets')
    .select('ticket_hash')
    .where('kind', '=', kind)
    .where('subject_id', '=', subject_id)
    .orderBy('created_at', 'desc')
    .orderBy('ticket_hash')
    .offset(retained)
    .limit(retained)
    .execute();
  if (older.length === 0) return;
  const hashes = older.map(({ ticket_hash }) => ticket_hash);
  await tx.deleteFrom('log_in_tickets').where('ticket_hash', 'in', hashes).execute();
}

/** Finds a ticket without using it. */
export function findLogInTicket(
  db: Db,
  kind: LogInTicket['kind'],
  hash: string,
): Promise<LogInTicket | undefined> {
  return db
    .selectFrom('log_in_tickets')
    .selectAll()
    .where('ticket_hash', '=', hash)
    .where('kind', '=', kind)
    .executeTakeFirst();
}

/** Deletes a ticket. Returns false if another transaction has deleted it. */
export async function useLogInTicket(tx: Db, hash: string): Promise<boolean> {
  const used = await tx
    .deleteFrom('log_in_tickets')
    .where('ticket_hash', '=', hash)
    .executeTakeFirst();
  return used.numDeletedRows > 0n;
}

export async function deleteExpiredLogInTickets(tx: Db, nowMs: number): Promise<void> {
  await tx.deleteFrom('log_in_tickets').where('expires_at', '<=', nowMs).execute();
}
