/** Queries on the mails table. */

import type { Insertable, Updateable } from 'kysely';
import { dueRows } from '../../platform/database/due-rows.ts';
import type { MailsTable } from '../../platform/database/tables/delivery.ts';
import type { Db, MailRow } from '../../platform/database/tables.ts';

export const waitingMails = dueRows('mails', ['waiting']);

/** Stores a mail unless a mail with its key exists. */
export async function insertMail(db: Db, row: Insertable<MailsTable>): Promise<void> {
  await db
    .insertInto('mails')
    .values(row)
    .onConflict((conflict) => conflict.column('dedupe_key').doNothing())
    .execute();
}

/** Counts mails of one kind to a recipient since a time, in all states. */
export async function countMailsSince(
  db: Db,
  owner: { accountId: string } | { providerId: string },
  kind: string,
  sinceMs: number,
): Promise<number> {
  const row = await db
    .selectFrom('mails')
    .select((select) => select.fn.countAll<number>().as('count'))
    .where((eb) =>
      'accountId' in owner
        ? eb('account_id', '=', owner.accountId)
        : eb('provider_id', '=', owner.providerId),
    )
    .where('kind', '=', kind)
    .where('created_at', '>', sinceMs)
    .executeTakeFirstOrThrow();
  return Number(row.count);
}

export async function updateMail(
  db: Db,
  id: string,
  change: Updateable<MailsTable>,
): Promise<void> {
  await db.updateTable('mails').set(change).where('id', '=', id).execute();
}

/** Returns the mails in the outbox, newest first. */
export function listKeptMails(db: Db, limit: number): Promise<MailRow[]> {
  return db
    .selectFrom('mails')
    .selectAll()
    .where('state', '=', 'kept')
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .limit(limit)
    .execute();
}

/** Deletes mails older than a time, except waiting ones. */
export async function deleteOldMails(db: Db, createdBeforeMs: number): Promise<void> {
  await db
    .deleteFrom('mails')
    .where('created_at', '<', createdBeforeMs)
    .where('state', '<>', 'waiting')
    .execute();
}

export async function deleteMailsOf(db: Db, accountId: string): Promise<void> {
  await db.deleteFrom('mails').where('account_id', '=', accountId).execute();
}
