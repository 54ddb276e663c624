/** What an account can spend: its paid and its granted credit, less what is held (README, "Money"). */
import { ApiError } from '#shared/runtime/errors.ts';
import type { Db } from '../../platform/database/tables.ts';
import { requireAmount } from './ledger.entries.ts';
import { type Balances, balancesOfTwo, lockedBalances } from './ledger.store.ts';
import type { LedgerAccount, Leg } from './ledger-account.ts';

/** All in micro-dollars; `available` is paid + granted - held. */
export type Wallet = {
  accountId: string;
  paid: number;
  granted: number;
  held: number;
  /** What of `held` is granted credit. */
  heldOfGranted: number;
  available: number;
};

/** Of an account that was never posted to. */
const NOTHING = { debits_posted: 0, credits_posted: 0, debits_pending: 0 };

/** The account of what the renter paid. */
export const paidAccount = (accountId: string): LedgerAccount => `user:${accountId}`;
/** The account of what the renter was given: spent first, never passed on. */
export const grantedAccount = (accountId: string): LedgerAccount => `granted:${accountId}`;

/** An account that was never posted to has nothing. Rejects with `account_balance_invalid` when the figures are no usable numbers. */
export async function walletOf(db: Db, accountId: string): Promise<Wallet> {
  const [one, other] = [paidAccount(accountId), grantedAccount(accountId)];
  const [first, second] = (await readable(balancesOfTwo(db, { one, other }))).rows;
  // In either order.
  return first?.id === one
    ? walletIn(accountId, first, second)
    : walletIn(accountId, second, first);
}

/**
 * The same of any number of accounts, in their order, which nobody else changes until the commit: for who judges what
 * they have and then spends it. Whoever settles holds of several accounts in one transaction calls it first.
 */
export async function lockedWallets(tx: Db, accountIds: readonly string[]): Promise<Wallet[]> {
  const ids = accountIds.flatMap((id) => [grantedAccount(id), paidAccount(id)]);
  const balances = await readable(lockedBalances(tx, ids));
  return accountIds.map((id) =>
    walletIn(id, balances.get(paidAccount(id)), balances.get(grantedAccount(id))),
  );
}

/** The same of one account. */
export async function lockedWalletOf(tx: Db, accountId: string): Promise<Wallet> {
  const [wallet] = await lockedWallets(tx, [accountId]);
  if (wallet === undefined) throw new Error('no wallet for an account');
  return wallet;
}

/** What one account of the chart has, and what of that is set aside. */
export async function standingOfOne(db: Db, id: LedgerAccount): Promise<Standing> {
  return standingIn((await readable(balancesOfTwo(db, { one: id, other: id }))).rows[0]);
}

/** The same, which nobody else changes until the commit. */
export async function lockedStandingOf(tx: Db, id: LedgerAccount): Promise<Standing> {
  return standingIn((await readable(lockedBalances(tx, [id]))).get(id));
}

/** In micro-dollars; `posted` may be below 0 of an account that may owe. */
export type Standing = { posted: number; pending: number };

function standingIn(row: Omit<Balances, 'id'> = NOTHING): Standing {
  return { posted: row.credits_posted - row.debits_posted, pending: row.debits_pending };
}

function walletIn(
  accountId: string,
  ofPaid: Omit<Balances, 'id'> = NOTHING,
  ofGranted: Omit<Balances, 'id'> = NOTHING,
): Wallet {
  const paid = ofPaid.credits_posted - ofPaid.debits_posted;
  const granted = ofGranted.credits_posted - ofGranted.debits_posted;
  const heldOfGranted = ofGranted.debits_pending;
  const held = ofPaid.debits_pending + heldOfGranted;
  const available = paid + granted - held;
  // With these two the others are: none is below 0.
  if (!Number.isSafeInteger(paid + granted) || available < 0) throw unreadable();
  return { accountId, paid, granted, held, heldOfGranted, available };
}

/**
 * The legs that bring `amountUusd` of a wallet to `to`, granted credit first; none for nothing. What is held is left
 * alone. Throws `insufficient_balance` where less than that is available.
 */
export function spendLegs(wallet: Wallet, amountUusd: number, to: LedgerAccount): Leg[] {
  if (amountUusd === 0) return [];
  requireAmount(amountUusd);
  if (amountUusd > wallet.available) {
    throw new ApiError('insufficient_balance', 'The balance does not cover this');
  }
  const granted = Math.min(amountUusd, wallet.granted - wallet.heldOfGranted);
  const legs: Leg[] = [
    { debit: grantedAccount(wallet.accountId), credit: to, amountUusd: granted },
    { debit: paidAccount(wallet.accountId), credit: to, amountUusd: amountUusd - granted },
  ];
  return legs.filter((leg) => leg.amountUusd > 0);
}

/** Both engines refuse to read a whole number beyond the safe range, with a RangeError: here `account_balance_invalid`. */
export function readable<T>(reading: Promise<T>): Promise<T> {
  return reading.catch((error) => {
    throw error instanceof RangeError ? unreadable() : error;
  });
}

/** The refusal of an account whose figures are no usable numbers, or not those that its journal gives. */
export function unreadable(): ApiError {
  return new ApiError('account_balance_invalid', 'The balance of this account cannot be read');
}
