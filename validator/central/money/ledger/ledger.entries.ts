/** What transfers do to the balances of accounts. Pure. */
import type { TransferKind } from '../../platform/database/tables/money.ts';
import type { LedgerAccount, Leg } from './ledger-account.ts';

/** A transfer to be written. */
export type Entry = Leg & {
  kind: TransferKind;
  /** The pending transfer that a `post` or `void` ends, and its whole amount. */
  pending: { seq: number; amountUusd: number } | null;
};

/** What is added to the columns of one account. */
export type AccountChange = {
  id: LedgerAccount;
  debits: number;
  credits: number;
  pending: number;
};

/** An amount that can be posted. Throws RangeError: a caller that has another one is wrong. */
export function requireAmount(amountUusd: number): void {
  if (Number.isSafeInteger(amountUusd) && amountUusd > 0) return;
  throw new RangeError(`${amountUusd} is no amount to post`);
}

/** A transfer that stands by itself. */
export function direct(leg: Leg): Entry {
  return { ...leg, kind: 'direct', pending: null };
}

/** One change for each account, in the order in which accounts are locked. Throws RangeError for sums beyond the safe range. */
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
    throw new RangeError('the amounts of one posting pass the safe range');
  }
  return all;
}
