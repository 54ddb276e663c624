/** Queries behind a balance: the account's posted amount and what its pods hold. */
import { sql } from 'kysely';
import type { Db } from '../db/tables.ts';
import { BILLABLE_STATES } from '../pods/pod.state.ts';

/** The posted balance; undefined when there is no such account. */
export async function postedOf(db: Db, accountId: string): Promise<number | undefined> {
  const row = await db
    .selectFrom('accounts')
    .select('balance_uusd')
    .where('id', '=', accountId)
    .executeTakeFirst();
  return row?.balance_uusd;
}

/** Sum of the holds of pods that have not ended. */
export async function heldBy(db: Db, accountId: string): Promise<number> {
  const row = await db
    .selectFrom('pods')
    .select(sql<number>`coalesce(sum(hold_uusd), 0)`.as('held'))
    .where('account_id', '=', accountId)
    .where('ended_at', 'is', null)
    .executeTakeFirstOrThrow();
  return row.held;
}

/** What the account's billable pods cost together per hour. */
export async function hourlyBurnOf(db: Db, accountId: string): Promise<number> {
  const row = await db
    .selectFrom('pods')
    .select(sql<number>`coalesce(sum(price_uusd_per_gpu_hour * gpu_count), 0)`.as('burn'))
    .where('account_id', '=', accountId)
    .where('state', 'in', BILLABLE_STATES)
    .executeTakeFirstOrThrow();
  return row.burn;
}
