/** Queries of the accounts table. Deleted accounts stay as rows, for events and money, and are never found. */

import type { Insertable, Updateable } from 'kysely';
import { isUniqueViolation } from '../../../database/engine.ts';
import type { AccountsTable } from '../../platform/database/tables/accounts.ts';
import type { Account, Db } from '../../platform/database/tables.ts';

/** Stores a new account; false if the address is taken. */
export async function insertAccount(db: Db, row: Insertable<AccountsTable>): Promise<boolean> {
  const result = await db
    .insertInto('accounts')
    .values(row)
    .onConflict((conflict) => conflict.column('email_norm').doNothing())
    .executeTakeFirst();
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/** By normalised address. */
export function findAccountByEmail(db: Db, emailNorm: string): Promise<Account | undefined> {
  return db
    .selectFrom('accounts')
    .selectAll()
    .where('email_norm', '=', emailNorm)
    .where('deleted_at', 'is', null)
    .executeTakeFirst();
}

/** The account that is linked to a chat user. */
export function findAccountByChatUser(db: Db, chatUserId: string): Promise<Account | undefined> {
  return db
    .selectFrom('accounts')
    .selectAll()
    .where('chat_user_id', '=', chatUserId)
    .executeTakeFirst();
}

/** Changes an account; false if its new address or chat user is another's, after which the transaction can only be undone. */
export async function updateAccount(
  db: Db,
  id: string,
  changes: Updateable<AccountsTable>,
): Promise<boolean> {
  try {
    await db
      .updateTable('accounts')
      .set(changes)
      .where('id', '=', id)
      .where('deleted_at', 'is', null)
      .execute();
    return true;
  } catch (error) {
    const claims = changes.email_norm !== undefined || changes.chat_user_id !== undefined;
    if (claims && isUniqueViolation(error)) return false;
    throw error;
  }
}

/** Notes that `emailNorm` was proven; false unless it is the account's address and still unproven. */
export async function markEmailVerified(
  db: Db,
  id: string,
  emailNorm: string,
  nowMs: number,
): Promise<boolean> {
  const done = await db
    .updateTable('accounts')
    .set({ email_verified_at: nowMs, updated_at: nowMs })
    .where('id', '=', id)
    .where('email_norm', '=', emailNorm)
    .where('email_verified_at', 'is', null)
    .where('deleted_at', 'is', null)
    .executeTakeFirst();
  return done.numUpdatedRows > 0n;
}
