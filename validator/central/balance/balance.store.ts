/** Queries behind a balance that are not the ledger's: what pods cost, and who had a sign-up credit. */
import { sql } from 'kysely';
import { prepared, type Slots } from '../db/prepared.ts';
import type { Db } from '../db/tables.ts';
import { BILLABLE_STATES } from '../pods/pod.state.ts';

const burn = prepared((db, { accountId }: Slots<{ accountId: string }>) =>
  db
    .selectFrom('pods')
    .select(sql<number>`coalesce(sum(price_uusd_per_gpu_hour * gpu_count), 0)`.as('burn'))
    .where('account_id', '=', accountId)
    .where('state', 'in', BILLABLE_STATES)
    .where('ended_at', 'is', null),
);

/** What the account's billable pods cost together per hour. */
export async function burnOf(db: Db, accountId: string): Promise<number> {
  return (await burn(db, { accountId })).rows[0]?.burn ?? 0;
}

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
