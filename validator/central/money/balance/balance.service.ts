/** Balances of accounts, the balance that a rental requires, and the sign-up credit. */

import { costMicroCeil, formatUsdCeil, formatUsdFloor } from '#shared/api/money.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Db } from '../../platform/database/tables.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import { causedBy } from '../ledger/double-entry.ts';
import { postGroup } from '../ledger/ledger.service.ts';
import { grantedAccount, walletOf } from '../ledger/wallet.service.ts';
import { rentalMinimum } from '../metering/cost.ts';
import { meteredAccounts } from '../metering/metered.service.ts';
import { burnPerHour as burnPerHourOf, type Funds } from '../metering/runway.ts';
import type { SettledAccount } from '../metering/settlement.service.ts';
import { claimAddressCredit, claimSignupCredit } from './balance.store.ts';

const HOUR_MS = 3_600_000;

/**
 * Amounts in micro-dollars; posted - held is available. `posted` is the balance of the journal less `unposted`, the use
 * that is metered and not posted yet. `runsOutAtMs` is the time at which pods stop at the present cost; null if they
 * never stop.
 */
export type Balance = {
  posted: number;
  unposted: number;
  held: number;
  burnPerHour: number;
  runsOutAtMs: number | null;
};

/**
 * Returns the balance after all use up to `nowMs`, whether or not this use is posted yet. Rejects with
 * `account_balance_invalid` if the stored amounts are inconsistent.
 */
export async function balanceOf(db: Db, accountId: string, nowMs: number): Promise<Balance> {
  const metered = (await meteredAccounts(db, [accountId], nowMs)).get(accountId);
  const { paid, granted, held } = metered?.wallet ?? (await walletOf(db, accountId));
  const burnPerHour = metered === undefined ? 0 : burnPerHourOf(metered.plan.meters);
  const runsOutAtMs = metered?.plan.cutOffMs ?? null;
  const unposted = metered?.unpostedUusd ?? 0;
  return { posted: paid + granted, unposted, held, burnPerHour, runsOutAtMs };
}

/** Converts a balance for the rules of low balances and top-ups. */
export function fundsIn({
  posted,
  held,
  burnPerHour,
  runsOutAtMs,
}: Omit<Balance, 'unposted'>): Funds {
  return { available: posted - held, burnPerHour, runsOutAtMs };
}

/**
 * Returns the micro-dollars that a rental holds: 15 minutes of its price. Throws 403 `insufficient_balance` if the
 * balance does not cover this amount in addition to the needs of other pods. Clients parse the message.
 */
export function requireRentalFunds(
  { wallet: { paid, granted, available }, reservedUusd }: SettledAccount,
  priceUusdPerGpuHour: number,
  gpus: number,
  act: 'renting it' | 'starting it again' = 'renting it',
): number {
  const minimum = rentalMinimum(priceUusdPerGpuHour, gpus);
  const free = available - reservedUusd;
  if (paid + granted > 0 && free >= minimum) return minimum;
  const hourly = formatUsdCeil(costMicroCeil(priceUusdPerGpuHour, gpus, HOUR_MS));
  throw new ApiError(
    'insufficient_balance',
    `Insufficient balance. This node costs ${hourly}/hour, so ${act} requires at least ` +
      `${formatUsdCeil(minimum)} (15 minutes of runtime). Your balance is ${formatUsdFloor(Math.max(0, free))}${reservedText(reservedUusd)}.`,
  );
}

/** Part of an error message about the amount that is reserved for the account's pods; empty if nothing is reserved. */
export function reservedText(reservedUusd: number): string {
  if (reservedUusd === 0) return '';
  return ` in addition to the ${formatUsdCeil(reservedUusd)} that your pods need for their next 15 minutes`;
}

export type SignupCredit = {
  accountId: string;
  /** Hash of the verified address, which receives the credit once, even if a new account has the address. */
  addressHash: string;
  amountUusd: number;
  nowMs: number;
};

/** Grants the sign-up credit once per account and once per address. Returns the micro-dollars granted. */
export async function grantSignupCredit(tx: Db, credit: SignupCredit): Promise<number> {
  const { accountId, addressHash, amountUusd, nowMs } = credit;
  if (amountUusd <= 0) return 0;
  if (!(await claimSignupCredit(tx, accountId, nowMs))) return 0;
  if (!(await claimAddressCredit(tx, addressHash, nowMs))) return 0;
  const leg = {
    debit: 'platform:credits_granted',
    credit: grantedAccount(accountId),
    amountUusd,
  } as const;
  const cause = { type: 'signup-credit', id: accountId, atMs: nowMs, once: true };
  await postGroup(tx, [leg], causedBy(SYSTEM_ACTOR, cause));
  return amountUusd;
}
