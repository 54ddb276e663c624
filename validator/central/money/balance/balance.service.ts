/** What an account can spend and what its pods cost, what a rental must find there, and the credit of a sign-up. */

import { costMicroCeil, formatUsdCeil, formatUsdFloor } from '#shared/api/money.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Db } from '../../platform/database/tables.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import { postGroup } from '../ledger/ledger.service.ts';
import { causedBy } from '../ledger/ledger-account.ts';
import { grantedAccount, walletOf } from '../ledger/wallet.service.ts';
import type { Funds } from '../low-balance/low-balance.rule.ts';
import { rentalFloor } from '../metering/rental-floor.ts';
import { standingOf } from '../metering/runway.service.ts';
import type { Settled } from '../metering/settled-first.ts';
import { claimAddressCredit, claimSignupCredit } from './balance.store.ts';

const HOUR_MS = 3_600_000;

/** All in micro-dollars; available is posted - held. `runsOutAtMs`: when pods stop as things are; null: never. */
export type Balance = {
  posted: number;
  held: number;
  burnPerHour: number;
  runsOutAtMs: number | null;
};

/** 403 `account_balance_invalid` when the figures are no usable numbers. */
export async function balanceOf(db: Db, accountId: string): Promise<Balance> {
  const { paid, granted, held } = await walletOf(db, accountId);
  return { posted: paid + granted, held, ...(await standingOf(db, accountId)) };
}

/** The same as rules of low balances and top-ups judge it. */
export function fundsIn({ posted, held, burnPerHour, runsOutAtMs }: Balance): Funds {
  return { available: posted - held, burnPerHour, runsOutAtMs };
}

/** What a rental holds, and a start after a stop asks for. Throws 403 `insufficient_balance` in the words that clients parse (contract 2.3). */
export function requireFloor(
  { wallet: { paid, granted, available }, keptUusd }: Settled,
  priceUusdPerGpuHour: number,
  gpus: number,
  act: 'renting it' | 'starting it again' = 'renting it',
): number {
  const floor = rentalFloor(priceUusdPerGpuHour, gpus);
  const free = available - keptUusd;
  if (paid + granted > 0 && free >= floor) return floor;
  const hourly = formatUsdCeil(costMicroCeil(priceUusdPerGpuHour, gpus, HOUR_MS));
  throw new ApiError(
    'insufficient_balance',
    `Insufficient balance. This node costs ${hourly}/hour, so ${act} requires at least ` +
      `${formatUsdCeil(floor)} (15 minutes of runtime). Your balance is ${formatUsdFloor(Math.max(0, free))}${beside(keptUusd)}.`,
  );
}

/** Of a refusal: what the account's pods are left. */
export function beside(keptUusd: number): string {
  if (keptUusd === 0) return '';
  return ` beside the ${formatUsdCeil(keptUusd)} that your pods need for their next 15 minutes`;
}

export type SignupCredit = {
  accountId: string;
  /** Of the verified address: one that had a credit gets no second one under a new account. */
  addressHash: string;
  amountUusd: number;
  nowMs: number;
};

/** Grants the sign-up credit once per account and once per address; returns the micro-dollars granted. */
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
