/**
 * Referral earnings: a referrer receives part of the platform fee on the payments of the referred account. The
 * provider's share is not affected. Payments from granted credit earn nothing, because sign-ups alone would otherwise
 * be worth money.
 */
import { ApiError } from '#shared/runtime/errors.ts';
import type { Db, ReferralRow } from '../../platform/database/tables.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import { type Cause, causedBy, type LedgerAccount, type Leg } from '../ledger/double-entry.ts';
import { referralShare } from '../ledger/shares.ts';
import { balancesOf } from '../ledger/wallet.service.ts';
import {
  deleteReferralsBy,
  findReferrer,
  insertReferral,
  listReferrals,
  writeReferrals,
} from './referral.store.ts';

/** The ledger account of an account's referral earnings. */
export const referralAccount = (accountId: string): LedgerAccount => `referral:${accountId}`;

/** Returns the account with this referral code. Throws `bad_request` if there is none. */
export async function referrerOf(db: Db, code: string): Promise<string> {
  const referrerId = await findReferrer(db, code);
  if (referrerId !== null) return referrerId;
  throw new ApiError('bad_request', 'There is no such referral code', {
    hint: 'Correct the code, or leave it out.',
  });
}

/** Records the referrer of a new account. Call it in the transaction of the sign-up. */
export async function addReferral(
  tx: Db,
  accountId: string,
  referrerId: string,
  nowMs: number,
): Promise<void> {
  const row = { account_id: accountId, referrer_id: referrerId, created_at: nowMs };
  await insertReferral(tx, { ...row, paid_uusd: 0, accrued_uusd: 0, seq: 0 });
}

/** Ledger groups to post, and rows for `writeAccrual` to store in the same transaction. */
export type Accrual = { groups: { legs: Leg[]; cause: Cause }[]; rows: ReferralRow[] };

/**
 * Plans the credit of referrers for the latest payments of these accounts. Each credit is the share of the total so far
 * minus earlier credits, so the number of settlements does not matter. The caller holds the accounts' row locks.
 */
export async function accrueReferrals(
  tx: Db,
  paidBy: ReadonlyMap<string, number>,
  nowMs: number,
): Promise<Accrual> {
  const accrual: Accrual = { groups: [], rows: [] };
  const payers = [...paidBy].filter(([, uusd]) => uusd > 0).map(([id]) => id);
  if (payers.length === 0) return accrual;
  for (const row of await listReferrals(tx, payers)) {
    const paid = row.paid_uusd + (paidBy.get(row.account_id) ?? 0);
    const amountUusd = Math.max(0, referralShare(paid) - row.accrued_uusd);
    if (amountUusd === 0) {
      accrual.rows.push({ ...row, paid_uusd: paid });
      continue;
    }
    const seq = row.seq + 1;
    const credit = referralAccount(row.referrer_id);
    const id = `${row.account_id}:${seq}`;
    accrual.groups.push({
      legs: [{ debit: 'platform:fee', credit, amountUusd }],
      cause: causedBy(SYSTEM_ACTOR, { type: 'referral', id, atMs: nowMs, once: true }),
    });
    const accrued = row.accrued_uusd + amountUusd;
    accrual.rows.push({ ...row, paid_uusd: paid, accrued_uusd: accrued, seq });
  }
  return accrual;
}

/** Stores the rows of an accrual after its groups were posted. */
export const writeAccrual = (tx: Db, { rows }: Accrual): Promise<void> => writeReferrals(tx, rows);

/**
 * Plans the return of referral credit for a refund of `uusd` to an account, whose row the caller has locked. Otherwise
 * renters could earn referral credit by breaking pods. A referrer that was already paid out falls below 0.
 */
export async function returnReferral(
  tx: Db,
  accountId: string,
  uusd: number,
  nowMs: number,
): Promise<Accrual> {
  const [row] = uusd > 0 ? await listReferrals(tx, [accountId]) : [];
  if (row === undefined) return { groups: [], rows: [] };
  const paid = row.paid_uusd - uusd;
  const amountUusd = row.accrued_uusd - referralShare(paid);
  if (amountUusd <= 0) return { groups: [], rows: [{ ...row, paid_uusd: paid }] };
  const seq = row.seq + 1;
  const debit = referralAccount(row.referrer_id);
  const cause = { type: 'referral-back', id: `${accountId}:${seq}`, atMs: nowMs, once: true };
  return {
    groups: [
      {
        legs: [{ debit, credit: 'platform:fee', amountUusd }],
        cause: causedBy(SYSTEM_ACTOR, cause),
      },
    ],
    rows: [{ ...row, paid_uusd: paid, accrued_uusd: row.accrued_uusd - amountUusd, seq }],
  };
}

/** Micro-dollars of an account's referral earnings that were not paid, including a payout in progress. */
export async function earnedByReferrals(db: Db, accountId: string): Promise<number> {
  return (await balancesOf(db, referralAccount(accountId))).posted;
}

/** Ends the referrals by an account that is being removed. */
export const deleteReferrals = deleteReferralsBy;
