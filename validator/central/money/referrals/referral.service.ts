/**
 * What accounts earn with those that they brought: a part of the fee on what these paid, out of the platform's share
 * and never out of a provider's. Granted credit earns nobody anything, or a sign-up would be worth money.
 */

import { ApiError } from '#shared/runtime/errors.ts';
import type { Db, ReferralRow } from '../../platform/database/tables.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import { type Cause, causedBy, type LedgerAccount, type Leg } from '../ledger/ledger-account.ts';
import { referralShare } from '../ledger/shares.ts';
import { standingOfOne } from '../ledger/wallet.service.ts';
import {
  deleteReferralsBy,
  findReferrer,
  insertReferral,
  listReferrals,
  writeReferrals,
} from './referral.store.ts';

/** What an account has earned with those it brought, and was not paid. */
export const referralAccount = (accountId: string): LedgerAccount => `referral:${accountId}`;

/** Whose code it is. Throws `bad_request` for nobody's. */
export async function referrerOf(db: Db, code: string): Promise<string> {
  const referrerId = await findReferrer(db, code);
  if (referrerId !== null) return referrerId;
  throw new ApiError('bad_request', 'There is no such referral code', {
    hint: 'Correct it, or leave it out.',
  });
}

/** Notes in the transaction of a sign-up who brought the account. */
export async function noteReferral(
  tx: Db,
  accountId: string,
  referrerId: string,
  nowMs: number,
): Promise<void> {
  const row = { account_id: accountId, referrer_id: referrerId, created_at: nowMs };
  await insertReferral(tx, { ...row, paid_uusd: 0, accrued_uusd: 0, seq: 0 });
}

/** Postings that go with what accounts have just paid for use, and what is to be written with them. */
export type Accrual = { groups: { legs: Leg[]; cause: Cause }[]; rows: ReferralRow[] };

/**
 * The part of referrers in what these accounts have paid now, of which the caller holds the rows: the whole so far less
 * what was credited before, so that it does not depend on how often it is asked.
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

/** Writes what `accrueReferrals` or `returnReferral` came to, once its groups are posted. */
export const noteAccrued = (tx: Db, { rows }: Accrual): Promise<void> => writeReferrals(tx, rows);

/**
 * The same where `uusd` of what an account had paid goes back to it, of which the caller holds the row: what was credited for that
 * goes back too, or breaking pods would be a way to draw on the fees. A referrer that was paid out already owes it.
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

/** What an account has earned and was not paid, a payout under way included. */
export async function earnedByReferrals(db: Db, accountId: string): Promise<number> {
  return (await standingOfOne(db, referralAccount(accountId))).posted;
}

/** Those that an account brought, which is being deleted, earn nobody anything from now on. */
export const forgetReferrals = deleteReferralsBy;
