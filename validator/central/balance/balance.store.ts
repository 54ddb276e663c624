/** Queries behind a balance: the account's posted amount and what its pods hold. */
import { sql } from 'kysely';
import { prepared, type Slots } from '../db/prepared.ts';
import type { Db } from '../db/tables.ts';
import { BILLABLE_STATES } from '../pods/pod.state.ts';

type OfAccount = Slots<{ accountId: string }>;

const posted = prepared((db, { accountId }: OfAccount) =>
  db.selectFrom('accounts').select('balance_uusd').where('id', '=', accountId),
);

/** The posted balance; undefined when there is no such account. */
export async function postedOf(db: Db, accountId: string): Promise<number | undefined> {
  return (await posted(db, { accountId })).rows[0]?.balance_uusd;
}

export type Pledges = {
  /** Sum of the holds of pods that have not ended. */
  held: number;
  /** What the account's billable pods cost together per hour. */
  burn: number;
};

const pledged = prepared((db, { accountId }: OfAccount) =>
  db
    .selectFrom('pods')
    .select((eb) => [
      sql<number>`coalesce(sum(hold_uusd), 0)`.as('held'),
      sql<number>`coalesce(sum(case when ${eb('state', 'in', BILLABLE_STATES)}
        then price_uusd_per_gpu_hour * gpu_count else 0 end), 0)`.as('burn'),
    ])
    .where('account_id', '=', accountId)
    .where('ended_at', 'is', null),
);

/** What the account's pods ask of its balance. */
export async function pledgedBy(db: Db, accountId: string): Promise<Pledges> {
  return (await pledged(db, { accountId })).rows[0] ?? { held: 0, burn: 0 };
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

/** Adds to the posted balance. */
export async function addToBalance(db: Db, accountId: string, amountUusd: number): Promise<void> {
  await db
    .updateTable('accounts')
    .set((eb) => ({ balance_uusd: eb('balance_uusd', '+', amountUusd) }))
    .where('id', '=', accountId)
    .execute();
}
