/**
 * What an account can spend. Nothing is charged until the ledger exists: a pod only places a hold, so that
 * two rents cannot lean on the same money.
 */
import { ApiError } from '#shared/errors.ts';
import { costMicroCeil, formatUsdCeil, formatUsdFloor } from '#shared/money.ts';
import type { Db } from '../db/tables.ts';
import {
  addToBalance,
  claimAddressCredit,
  claimSignupCredit,
  pledgedBy,
  postedOf,
} from './balance.store.ts';

/** The runtime that a balance must cover when a pod is rented (specification, Authentication 8). */
const FLOOR_MS = 900_000;
const HOUR_MS = 3_600_000;

/** All in micro-dollars; available is posted - held. */
export type Balance = { posted: number; held: number; burnPerHour: number };

/** 403 `account_balance_invalid` when the figures are no usable numbers. */
export async function balanceOf(db: Db, accountId: string): Promise<Balance> {
  const posted = await readable(postedOf(db, accountId));
  const { held, burn: burnPerHour } = await readable(pledgedBy(db, accountId));
  if (posted === undefined || ![posted, held, burnPerHour].every(Number.isSafeInteger)) {
    throw unreadable();
  }
  return { posted, held, burnPerHour };
}

/** Both engines refuse a whole number beyond the safe range with a RangeError. */
async function readable<T>(reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    throw error instanceof RangeError ? unreadable() : error;
  }
}

function unreadable(): ApiError {
  return new ApiError('account_balance_invalid', 'The balance of this account cannot be read');
}

/** What must be available to rent `gpus` at this price: 15 minutes, rounded up. */
export function rentalFloor(priceUusdPerGpuHour: number, gpus: number): number {
  return costMicroCeil(priceUusdPerGpuHour, gpus, FLOOR_MS);
}

/** The hold of a rental. Throws 403 `insufficient_balance` in the words that clients parse (contract 2.3). */
export async function requireFloor(
  tx: Db,
  accountId: string,
  priceUusdPerGpuHour: number,
  gpus: number,
): Promise<number> {
  const { posted, held } = await balanceOf(tx, accountId);
  const floor = rentalFloor(priceUusdPerGpuHour, gpus);
  const available = posted - held;
  if (posted > 0 && available >= floor) return floor;
  const hourly = formatUsdCeil(costMicroCeil(priceUusdPerGpuHour, gpus, HOUR_MS));
  throw new ApiError(
    'insufficient_balance',
    `Insufficient balance. This node costs ${hourly}/hour, so renting it requires at least ` +
      `${formatUsdCeil(floor)} (15 minutes of runtime). Your balance is ${formatUsdFloor(Math.max(0, available))}.`,
  );
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
  await addToBalance(tx, accountId, amountUusd);
  return amountUusd;
}
