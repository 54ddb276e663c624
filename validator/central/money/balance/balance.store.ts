/** Queries behind a balance that are not the ledger's: who had a sign-up credit. */
import type { Db } from '../../platform/database/tables.ts';

/** Notes that the account's sign-up credit is granted; false when it was before. */
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

/** Notes that an address had its sign-up credit; false when it had it before, under whatever account. */
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
