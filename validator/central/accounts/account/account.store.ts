/** Queries of the accounts table. Deleted accounts remain as rows, for events and money, but no query finds them. */
import type { Insertable, Updateable } from 'kysely';
import { isUniqueViolation } from '../../../database/engine.ts';
import type { AccountsTable } from '../../platform/database/tables/accounts.ts';
import type { Account, Db } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';

/** Returns false if the address is taken. */
export async function insertAccount(db: Db, row: Insertable<AccountsTable>): Promise<boolean> {
  const result = await db
    .insertInto('accounts')
    .values(row)
    .onConflict((conflict) => conflict.column('email_norm').doNothing())
    .executeTakeFirst();
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

export function findAccountByEmail(db: Db, emailNorm: string): Promise<Account | undefined> {
  return db
    .selectFrom('accounts')
    .selectAll()
    .where('email_norm', '=', emailNorm)
    .where('deleted_at', 'is', null)
    .executeTakeFirst();
}

/** Locks the account with the address, so that nothing is stored for it after its removal. */
export async function lockAccountByEmail(tx: Db, emailNorm: string): Promise<Account | undefined> {
  const found = await findAccountByEmail(tx, emailNorm);
  if (found === undefined) return undefined;
  await lockRow(tx, 'accounts', found.id);
  const locked = await findAccountByEmail(tx, emailNorm);
  return locked?.id === found.id ? locked : undefined;
}

export function findAccountByChatUser(db: Db, chatUserId: string): Promise<Account | undefined> {
  return db
    .selectFrom('accounts')
    .selectAll()
    .where('chat_user_id', '=', chatUserId)
    .executeTakeFirst();
}

/**
 * Updates an account. Returns false if another account has its new address or chat user. The transaction can then only
 * be rolled back.
 */
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

/** Marks an address as verified. Returns false if it is not the account's address or was verified before. */
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

/** Returns the accounts with the operator's role, oldest grant first. */
export function listOperators(db: Db) {
  return db
    .selectFrom('accounts')
    .select(['id', 'email', 'operator_since'])
    .where('operator_since', 'is not', null)
    .where('deleted_at', 'is', null)
    .orderBy('operator_since')
    .execute();
}
