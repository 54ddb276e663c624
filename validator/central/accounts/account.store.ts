/** Queries of the accounts table. */
import type { Insertable, Updateable } from 'kysely';
import type { Account, AccountsTable, Db } from '../db/tables.ts';

/** Stores a new account; false if the address is taken. */
export async function insertAccount(db: Db, row: Insertable<AccountsTable>): Promise<boolean> {
  const result = await db
    .insertInto('accounts')
    .values(row)
    .onConflict((conflict) => conflict.column('email_norm').doNothing())
    .executeTakeFirst();
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/** By id. */
export function findAccount(db: Db, id: string): Promise<Account | undefined> {
  return db.selectFrom('accounts').selectAll().where('id', '=', id).executeTakeFirst();
}

/** By normalised address. */
export function findAccountByEmail(db: Db, emailNorm: string): Promise<Account | undefined> {
  return db
    .selectFrom('accounts')
    .selectAll()
    .where('email_norm', '=', emailNorm)
    .executeTakeFirst();
}

/** Changes an account. */
export async function updateAccount(
  db: Db,
  id: string,
  changes: Updateable<AccountsTable>,
): Promise<void> {
  await db.updateTable('accounts').set(changes).where('id', '=', id).execute();
}
