/**
 * Wallets: the amount that an account can spend, which is its paid and granted credit minus held amounts. See
 * ../README.md.
 */
import { ApiError } from '#shared/runtime/errors.ts';
import type { Db } from '../../platform/database/tables.ts';
import { type LedgerAccount, type Leg, requireAmount } from './double-entry.ts';
import { type Balances, balancesOfTwo, listBalances, lockedBalances } from './ledger.store.ts';

/** Amounts in micro-dollars. `available` is paid + granted - held. */
export type Wallet = {
  accountId: string;
  paid: number;
  granted: number;
  held: number;
  /** Part of `held` that is granted credit. */
  heldOfGranted: number;
  available: number;
};

/** Micro-dollars of a wallet, and the part of them that is granted credit. */
export type Portion = { uusd: number; granted: number };

/** Row of an account without postings. */
const NOTHING = { debits_posted: 0, credits_posted: 0, debits_pending: 0 };

/** Ledger account of the credit that a renter paid for. */
export const paidAccount = (accountId: string): LedgerAccount => `user:${accountId}`;
/** Ledger account of credit that the marketplace granted to a renter. It is spent first and cannot be transferred. */
export const grantedAccount = (accountId: string): LedgerAccount => `granted:${accountId}`;

/** Returns true for a ledger account of granted credit. */
export const isGranted = (id: string): boolean => id.startsWith('granted:');

/**
 * Rejects with `account_balance_invalid` if the stored amounts exceed the safe integer range or contradict each other.
 */
export async function walletOf(db: Db, accountId: string): Promise<Wallet> {
  const [one, other] = [paidAccount(accountId), grantedAccount(accountId)];
  const [first, second] = (await readable(balancesOfTwo(db, { one, other }))).rows;
  // The rows are in any order.
  return first?.id === one
    ? walletIn(accountId, first, second)
    : walletIn(accountId, second, first);
}

/**
 * Locks the wallets of accounts until the transaction ends and returns them in order. Required before a decision that
 * spends from these wallets, and before holds of several accounts are settled in one transaction.
 */
export async function lockedWallets(tx: Db, accountIds: readonly string[]): Promise<Wallet[]> {
  const ids = accountIds.flatMap((id) => [grantedAccount(id), paidAccount(id)]);
  const balances = await readable(lockedBalances(tx, ids));
  return accountIds.map((id) =>
    walletIn(id, balances.get(paidAccount(id)), balances.get(grantedAccount(id))),
  );
}

/** Same as `lockedWallets` for one account. */
export async function lockedWalletOf(tx: Db, accountId: string): Promise<Wallet> {
  const [wallet] = await lockedWallets(tx, [accountId]);
  if (wallet === undefined) throw new Error('no wallet for an account');
  return wallet;
}

export async function balancesOf(db: Db, id: LedgerAccount): Promise<AccountBalances> {
  return balancesIn((await readable(balancesOfTwo(db, { one: id, other: id }))).rows[0]);
}

/** Same as `balancesOf`, but locks the ledger account until the transaction ends. */
export async function lockedBalancesOf(tx: Db, id: LedgerAccount): Promise<AccountBalances> {
  return balancesIn((await readable(lockedBalances(tx, [id]))).get(id));
}

/** Returns the posted balances of these ledger accounts by id, in micro-dollars. Accounts without a posting are omitted. */
export async function postedOf(
  db: Db,
  ids: readonly LedgerAccount[],
): Promise<ReadonlyMap<string, number>> {
  const rows = await readable(listBalances(db, ids));
  return new Map(rows.map((row) => [row.id, balancesIn(row).posted]));
}

/** Amounts in micro-dollars. `posted` is below 0 if the account owes money; `pending` is the held amount. */
export type AccountBalances = { posted: number; pending: number };

function balancesIn(row: Omit<Balances, 'id'> = NOTHING): AccountBalances {
  return { posted: row.credits_posted - row.debits_posted, pending: row.debits_pending };
}

/** Wallet of these rows of `ledger_accounts`; a missing row has no postings. Rejects as `walletOf` does. */
export function walletIn(
  accountId: string,
  ofPaid: Omit<Balances, 'id'> = NOTHING,
  ofGranted: Omit<Balances, 'id'> = NOTHING,
): Wallet {
  const paid = ofPaid.credits_posted - ofPaid.debits_posted;
  const granted = ofGranted.credits_posted - ofGranted.debits_posted;
  const heldOfGranted = ofGranted.debits_pending;
  const held = ofPaid.debits_pending + heldOfGranted;
  const available = paid + granted - held;
  // If these two figures are valid, the others are valid too, because none of them is below 0.
  if (!Number.isSafeInteger(paid + granted) || available < 0) throw unreadable();
  return { accountId, paid, granted, held, heldOfGranted, available };
}

/** The wallet after a hold was resolved: `post` of it is spent, and the rest is available again. Pure. */
export function walletAfterHold(wallet: Wallet, hold: Portion, post: Portion): Wallet {
  return {
    ...wallet,
    paid: wallet.paid - (post.uusd - post.granted),
    granted: wallet.granted - post.granted,
    held: wallet.held - hold.uusd,
    heldOfGranted: wallet.heldOfGranted - hold.granted,
    available: wallet.available + hold.uusd - post.uusd,
  };
}

/**
 * Returns the legs that move `amountUusd` from a wallet to `to`, granted credit first; returns no legs for 0. Held
 * amounts are not used. Throws `insufficient_balance` if less is available.
 */
export function spendLegs(wallet: Wallet, amountUusd: number, to: LedgerAccount): Leg[] {
  if (amountUusd === 0) return [];
  requireAmount(amountUusd);
  if (amountUusd > wallet.available) {
    throw new ApiError('insufficient_balance', 'The available balance does not cover this amount');
  }
  const granted = Math.min(amountUusd, wallet.granted - wallet.heldOfGranted);
  const legs: Leg[] = [
    { debit: grantedAccount(wallet.accountId), credit: to, amountUusd: granted },
    { debit: paidAccount(wallet.accountId), credit: to, amountUusd: amountUusd - granted },
  ];
  return legs.filter((leg) => leg.amountUusd > 0);
}

/** Converts the RangeError that both database engines throw for unsafe integers to `account_balance_invalid`. */
export function readable<T>(reading: Promise<T>): Promise<T> {
  return reading.catch((error) => {
    throw error instanceof RangeError ? unreadable() : error;
  });
}

/** Error for an account whose stored amounts are inconsistent or differ from its journal. */
export function unreadable(): ApiError {
  return new ApiError('account_balance_invalid', 'The balance of this account cannot be read');
}
