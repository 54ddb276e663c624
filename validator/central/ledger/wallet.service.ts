/** What an account can spend: its paid and its granted credit, less what is held (README, "Money"). */
import { ApiError } from '#shared/errors.ts';
import type { Db } from '../db/tables.ts';
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

/** The account of what the renter paid. */
export const paidAccount = (accountId: string): LedgerAccount => `user:${accountId}`;
/** The account of what the renter was given: spent first, never passed on. */
export const grantedAccount = (accountId: string): LedgerAccount => `granted:${accountId}`;

/** An account that was never posted to has nothing. Rejects with `account_balance_invalid` when the figures are no usable numbers. */
export async function walletOf(db: Db, accountId: string): Promise<Wallet> {
  const rows = await readable(balancesOfTwo(db, paidAccount(accountId), grantedAccount(accountId)));
  return walletIn(new Map(rows.map((row) => [row.id, row])), accountId);
}

/**
 * The same of any number of accounts, in their order, which nobody else changes until the commit: for who judges what
 * they have and then spends it. Whoever settles holds of several accounts in one transaction calls it first.
 */
export async function lockedWallets(tx: Db, accountIds: readonly string[]): Promise<Wallet[]> {
  const ids = accountIds.flatMap((id) => [grantedAccount(id), paidAccount(id)]);
  const balances = await readable(lockedBalances(tx, ids));
  return accountIds.map((id) => walletIn(balances, id));
}

/** The same of one account. */
export async function lockedWalletOf(tx: Db, accountId: string): Promise<Wallet> {
  const [wallet] = await lockedWallets(tx, [accountId]);
  if (wallet === undefined) throw new Error('no wallet for an account');
  return wallet;
}

function walletIn(balances: ReadonlyMap<string, Balances>, accountId: string): Wallet {
  const paid = balanceIn(balances, paidAccount(accountId));
  const granted = balanceIn(balances, grantedAccount(accountId));
  const wallet = {
    accountId,
    paid: paid.posted,
    granted: granted.posted,
    held: paid.held + granted.held,
    heldOfGranted: granted.held,
    available: paid.posted + granted.posted - paid.held - granted.held,
  };
  const figures = [wallet.paid + wallet.granted, wallet.held, wallet.available];
  if (!figures.every(Number.isSafeInteger) || wallet.available < 0) throw unreadable();
  return wallet;
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

function balanceIn(balances: ReadonlyMap<string, Balances>, id: LedgerAccount) {
  const row = balances.get(id);
  if (row === undefined) return { posted: 0, held: 0 };
  return { posted: row.credits_posted - row.debits_posted, held: row.debits_pending };
}

/** Both engines refuse to read a whole number beyond the safe range, with a RangeError: here `account_balance_invalid`. */
export async function readable<T>(reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    throw error instanceof RangeError ? unreadable() : error;
  }
}

function unreadable(): ApiError {
  return new ApiError('account_balance_invalid', 'The balance of this account cannot be read');
}
