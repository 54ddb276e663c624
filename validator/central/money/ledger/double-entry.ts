/**
 * Double entry: the chart of accounts, transfers between accounts, and their effect on balances. See ../README.md.
 * Pure.
 */

import type { TransferKind } from '../../platform/database/tables/money.ts';
import type { Actor } from '../../platform/identity.ts';

/**
 * Accounts. `user:` is paid credit of a renter; `granted:` is credit that the renter received as a gift; `provider:`
 * and `referral:` are unpaid earnings of a provider and of an account that referred others.
 */
export type LedgerAccount =
  | `user:${string}`
  | `granted:${string}`
  | `provider:${string}`
  | `referral:${string}`
  | 'platform:fee'
  | 'platform:credits_granted'
  | 'platform:absorbed'
  | 'external:topup'
  | 'external:payout'
  | 'clearing:usage'
  | 'clearing:refund'
  | 'rounding';

/** One transfer from the debited to the credited account, in whole micro-dollars above 0. */
export type Leg = { debit: LedgerAccount; credit: LedgerAccount; amountUusd: number };

/** Reason for a group of transfers. With `once`, the type and id must be unique among all such groups. */
export type Cause = {
  type: string;
  id: string;
  /** Actor in the form that `causedBy` returns. */
  actor: string;
  requestId: string | null;
  atMs: number;
  once?: boolean;
};

export function causedBy(actor: Actor, cause: Omit<Cause, 'actor' | 'requestId'>): Cause {
  const { auth, apiKeyId, requestId } = actor;
  return { ...cause, actor: apiKeyId === null ? auth : `${auth}:${apiKeyId}`, requestId };
}

/** A transfer to be written. */
export type Entry = Leg & {
  kind: TransferKind;
  /** The pending transfer that a `post` or `void` ends, with its whole amount. */
  pending: { seq: number; amountUusd: number } | null;
};

/** Amounts to add to the balance columns of one account. */
export type AccountChange = {
  id: LedgerAccount;
  debits: number;
  credits: number;
  pending: number;
};

/** Throws RangeError if the amount is not a safe integer above 0. */
export function requireAmount(amountUusd: number): void {
  if (Number.isSafeInteger(amountUusd) && amountUusd > 0) return;
  throw new RangeError(`${amountUusd} is not a valid amount to post`);
}

/** A transfer without a pending phase. */
export function direct(leg: Leg): Entry {
  return { ...leg, kind: 'direct', pending: null };
}

/**
 * Sums entries: one change for each account, sorted in the order in which accounts are locked. Throws RangeError if a
 * sum exceeds the safe integer range.
 */
export function changesOf(entries: readonly Entry[]): AccountChange[] {
  const changes = new Map<LedgerAccount, AccountChange>();
  const change = (id: LedgerAccount): AccountChange => {
    const known = changes.get(id) ?? { id, debits: 0, credits: 0, pending: 0 };
    changes.set(id, known);
    return known;
  };
  for (const { debit, credit, amountUusd, kind, pending } of entries) {
    requireAmount(amountUusd);
    if (kind === 'pending') change(debit).pending += amountUusd;
    if (pending !== null) change(debit).pending -= pending.amountUusd;
    if (kind === 'direct' || kind === 'post') {
      change(debit).debits += amountUusd;
      change(credit).credits += amountUusd;
    }
  }
  const all = [...changes.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1));
  for (const { debits, credits, pending } of all) {
    if ([debits, credits, pending].every(Number.isSafeInteger)) continue;
    throw new RangeError('the amounts of one posting exceed the safe integer range');
  }
  return all;
}
