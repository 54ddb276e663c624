/** Queries on payouts and on the earnings that they pay out. */
import type { Updateable } from 'kysely';
import { dueRows } from '../../platform/database/due-rows.ts';
import type { PayoutsTable } from '../../platform/database/tables/money.ts';
import type { Db, PayoutRow } from '../../platform/database/tables.ts';
import { OPEN_STATES } from './payout.state.ts';

/** Open payouts, for the job that queries the processor. */
export const openPayouts = dueRows('payouts', OPEN_STATES);

export async function insertPayout(db: Db, row: PayoutRow): Promise<void> {
  await db.insertInto('payouts').values(row).execute();
}

export function findPayout(db: Db, id: string): Promise<PayoutRow | undefined> {
  return db.selectFrom('payouts').selectAll().where('id', '=', id).executeTakeFirst();
}

/** The open payout of a party; it has at most one. */
export function findOpen(db: Db, party: string): Promise<PayoutRow | undefined> {
  return db
    .selectFrom('payouts')
    .selectAll()
    .where('party', '=', party)
    .where('state', 'in', OPEN_STATES)
    .executeTakeFirst();
}

/** Newest first. */
export function listPayouts(db: Db, limit: number): Promise<PayoutRow[]> {
  return db
    .selectFrom('payouts')
    .selectAll()
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .limit(limit)
    .execute();
}

/** Updates a payout. Returns false if its state has changed since `row` was read. */
export async function changePayout(
  db: Db,
  row: PayoutRow,
  changes: Updateable<PayoutsTable>,
): Promise<boolean> {
  const done = await db
    .updateTable('payouts')
    .set(changes)
    .where('id', '=', row.id)
    .where('state', '=', row.state)
    .executeTakeFirst();
  return done.numUpdatedRows > 0n;
}

/** Returns the instant before which all earnings of a party are paid out; 0 if none are. */
export async function paidUntil(db: Db, party: string): Promise<number> {
  const row = await db
    .selectFrom('payouts')
    .select((eb) => eb.fn.max('covers_until_ms').as('until'))
    .where('party', '=', party)
    .where('state', '=', 'paid')
    .executeTakeFirst();
  return row?.until ?? 0;
}

/** Micro-dollars that a provider earned on days from `fromMs` on, minus refunds. */
export async function earnedSince(db: Db, providerId: string, fromMs: number): Promise<number> {
  const row = await db
    .selectFrom('billing_periods')
    .select((eb) => [
      eb.fn.sum<number | null>('net_uusd').as('net'),
      eb.fn.sum<number | null>('refunded_net_uusd').as('refunded'),
    ])
    .where('provider_id', '=', providerId)
    .where('day_ms', '>=', fromMs)
    .executeTakeFirst();
  return (row?.net ?? 0) - (row?.refunded ?? 0);
}

/**
 * Micro-dollars that a ledger account received from `platform:fee` from `fromMs` on. Does not subtract what the
 * account has paid back to `platform:fee` (`referral-back`).
 */
export async function fromFeesSince(db: Db, account: string, fromMs: number): Promise<number> {
  // Reads the index from its newest end, so the cost does not grow with older history.
  const before = await db
    .selectFrom('transfers')
    .innerJoin('ledger_groups', 'ledger_groups.id', 'transfers.group_id')
    .select('transfers.seq')
    .where('credit_id', '=', account)
    .where('at_ms', '<', fromMs)
    .orderBy('transfers.seq', 'desc')
    .limit(1)
    .executeTakeFirst();
  const got = await db
    .selectFrom('transfers')
    .select((eb) => eb.fn.sum<number | null>('amount_uusd').as('uusd'))
    .where('credit_id', '=', account)
    .where('debit_id', '=', 'platform:fee')
    .where('seq', '>', before?.seq ?? 0)
    .executeTakeFirst();
  return got?.uusd ?? 0;
}

/**
 * Returns the ids of providers' and referrers' ledger accounts with a positive balance, in ascending order. Only ids
 * greater than `after` are returned.
 */
export async function listCreditors(db: Db, after: string, limit: number): Promise<string[]> {
  const rows = await db
    .selectFrom('ledger_accounts')
    .select('id')
    .where((eb) => eb.or([eb('id', 'like', 'provider:%'), eb('id', 'like', 'referral:%')]))
    .where('id', '>', after)
    .whereRef('credits_posted', '>', 'debits_posted')
    .orderBy('id')
    .limit(limit)
    .execute();
  return rows.map(({ id }) => id);
}
