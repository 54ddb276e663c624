/** Queries of the credit_transfers table. */

import type { Insertable } from 'kysely';
import type { CreditTransfersTable } from '../../platform/database/tables/money.ts';
import type { CreditTransfer, Db } from '../../platform/database/tables.ts';

/** A transfer with the current addresses of both accounts. */
export type ListedTransfer = CreditTransfer & { sender_email: string; recipient_email: string };

export async function insertTransfer(db: Db, row: Insertable<CreditTransfersTable>): Promise<void> {
  await db.insertInto('credit_transfers').values(row).execute();
}

/** Returns a page of the transfers that an account sent or received, newest first. `page` counts from 1. */
export function listTransfers(
  db: Db,
  accountId: string,
  { page, limit }: { page: number; limit: number },
): Promise<ListedTransfer[]> {
  return db
    .selectFrom('credit_transfers')
    .innerJoin('accounts as sender', 'sender.id', 'credit_transfers.sender_id')
    .innerJoin('accounts as recipient', 'recipient.id', 'credit_transfers.recipient_id')
    .selectAll('credit_transfers')
    .select(['sender.email as sender_email', 'recipient.email as recipient_email'])
    .where((either) =>
      either.or([either('sender_id', '=', accountId), either('recipient_id', '=', accountId)]),
    )
    .orderBy('seq', 'desc')
    .offset((page - 1) * limit)
    .limit(limit)
    .execute();
}

/** Clears the notes of the transfers that an account sent. */
export async function clearNotes(db: Db, senderId: string): Promise<void> {
  await db
    .updateTable('credit_transfers')
    .set({ note: null })
    .where('sender_id', '=', senderId)
    .execute();
}
