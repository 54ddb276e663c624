/** Queries of the accounts and addresses that have received the sign-up credit. */
import type { Db } from '../../platform/database/tables.ts';

/** Marks the account as having received the credit. Returns false if the account had already received the credit. */
export async function claimSignupCredit(
  db: Db,
  accountId: string,
  nowMs: number,
): Promise<boolean> {
  const done = await db
    .updateTable('accounts')
    .set({ signup_credit_at: nowMs })
    .where('id', '=', accountId)
    .where('signup_credit_at', 'is', null)
    .executeTakeFirst();
  return done.numUpdatedRows > 0n;
}

/**
 * Marks an address as having received the credit. Returns false if the address had already received the credit with any
 * account.
 */
export async function claimAddressCredit(
  db: Db,
  emailHash: string,
  nowMs: number,
): Promise<boolean> {
  const done = await db
    .insertInto('signup_credits')
    .values({ email_hash: emailHash, granted_at: nowMs })
    .onConflict((conflict) => conflict.column('email_hash').doNothing())
    .executeTakeFirst();
  return (done.numInsertedOrUpdatedRows ?? 0n) > 0n;
}
