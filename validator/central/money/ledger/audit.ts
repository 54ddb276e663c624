/**
 * Recomputes every balance from the journal and compares it with the stored balance. Checks invariants I1 to I4, I8,
 * I15, I16 and I17 of ../README.md. Pure.
 */

import { createHash } from 'node:crypto';
import type { TransferKind } from '../../platform/database/tables/money.ts';

export type StoredTransfer = {
  seq: number;
  group_id: number;
  debit_id: string;
  credit_id: string;
  amount_uusd: number;
  kind: TransferKind;
  pending_seq: number | null;
};

/** Totals of an account, stored or recomputed. */
export type StoredAccount = {
  id: string;
  debits_posted: number;
  credits_posted: number;
  debits_pending: number;
};

/** A broken invariant and its location. */
export type Finding = { rule: string; where: string; what: string };

/** Accounts through which money only passes. Their balance is 0 after every group. */
const TRANSIT_ACCOUNTS = ['clearing:usage', 'clearing:refund', 'rounding'];

export type Audit = ReturnType<typeof createAudit>;

/** Creates an audit. Call `add` for every transfer in order, then `finish` with the stored accounts. */
export function createAudit(find: (finding: Finding) => void) {
  const accounts = new Map<string, StoredAccount>();
  const open = new Map<number, StoredTransfer>();
  /** Open holds: the numbers of their open and of their ended transfers. */
  const holds = new Map<number, { open: number; ended: number }>();
  let last = 0;

  function accountOf(id: string): StoredAccount {
    const known = accounts.get(id);
    if (known !== undefined) return known;
    const made = { id, debits_posted: 0, credits_posted: 0, debits_pending: 0 };
    accounts.set(id, made);
    return made;
  }

  function post({ debit_id, credit_id, amount_uusd }: StoredTransfer): void {
    accountOf(debit_id).debits_posted += amount_uusd;
    accountOf(credit_id).credits_posted += amount_uusd;
  }

  function end(transfer: StoredTransfer): void {
    const where = `transfer ${transfer.seq}`;
    const pending = open.get(transfer.pending_seq ?? 0);
    if (pending === undefined) {
      find({
        rule: 'I4',
        where,
        what: `resolves ${transfer.pending_seq}, but that transfer is not open`,
      });
      return;
    }
    const { debit_id, credit_id, amount_uusd, group_id } = pending;
    const fits =
      transfer.kind === 'void'
        ? transfer.amount_uusd === amount_uusd
        : transfer.amount_uusd <= amount_uusd;
    if (!fits || transfer.debit_id !== debit_id || transfer.credit_id !== credit_id) {
      find({ rule: 'I4', where, what: `does not match ${pending.seq}, which it resolves` });
    }
    open.delete(pending.seq);
    accountOf(debit_id).debits_pending -= amount_uusd;
    const hold = holds.get(group_id) ?? { open: 0, ended: 0 };
    holds.set(group_id, { open: hold.open - 1, ended: hold.ended + 1 });
    if (hold.open <= 1) holds.delete(group_id);
  }

  /** Reports a payout that exceeds the earnings that are neither paid out nor reserved for a payout. */
  function checkPayout({ seq, debit_id }: StoredTransfer): void {
    const account = accountOf(debit_id);
    const free = balanceOf(account) - account.debits_pending;
    if (free >= 0) return;
    find({
      rule: 'I16',
      where: `transfer ${seq}`,
      what: `pays ${-free} uUSD more than the earnings`,
    });
  }

  return {
    add(transfer: StoredTransfer): void {
      const { seq, debit_id, credit_id, amount_uusd, kind } = transfer;
      const where = `transfer ${seq}`;
      if (seq <= last) find({ rule: 'I3', where, what: `comes after transfer ${last}` });
      last = seq;
      if (!Number.isSafeInteger(amount_uusd) || amount_uusd <= 0 || debit_id === credit_id) {
        find({
          rule: 'I1',
          where,
          what: 'has no valid amount or has the same account on both sides',
        });
      }
      if (kind === 'pending') {
        open.set(seq, transfer);
        const hold = holds.get(transfer.group_id) ?? { open: 0, ended: 0 };
        holds.set(transfer.group_id, { ...hold, open: hold.open + 1 });
        accountOf(debit_id).debits_pending += amount_uusd;
        if (credit_id === 'external:payout') checkPayout(transfer);
      }
      if (kind === 'direct' || kind === 'post') post(transfer);
      if (kind === 'post' || kind === 'void') end(transfer);
    },

    /** Hash of the balances recomputed so far. */
    hash: (): string => balanceHash([...accounts.values()]),

    /** Continues after `seq` with recorded balances and open holds, because earlier transfers cannot be read. */
    resume(seq: number, balances: readonly StoredAccount[], pending: readonly StoredTransfer[]) {
      last = seq;
      for (const map of [accounts, open, holds]) map.clear();
      for (const account of balances) accounts.set(account.id, { ...account });
      for (const transfer of pending) {
        open.set(transfer.seq, transfer);
        const hold = holds.get(transfer.group_id) ?? { open: 0, ended: 0 };
        holds.set(transfer.group_id, { ...hold, open: hold.open + 1 });
      }
    },

    /** Group ids of the holds that are still open. */
    openHolds: (): number[] => [...holds.keys()],

    /** Compares the stored accounts with the recomputed balances and returns the hash of the recomputed balances. */
    finish(stored: readonly StoredAccount[]): string {
      for (const [hold, { ended }] of holds) {
        if (ended > 0) find({ rule: 'I4', where: `hold ${hold}`, what: 'is only partly resolved' });
      }
      compare(accounts, stored, find);
      for (const account of [...accounts.values(), ...stored]) checkNotNegative(account, find);
      for (const id of TRANSIT_ACCOUNTS) {
        const left = balanceOf(accounts.get(id));
        if (left !== 0) find({ rule: 'I8', where: id, what: `has a balance of ${left} uUSD` });
      }
      return balanceHash([...accounts.values()]);
    },
  };
}

/** SHA-256 over one line `id,debits,credits,pending\n` for each account with an amount other than 0, sorted. */
export function balanceHash(accounts: readonly StoredAccount[]): string {
  const lines = accounts
    .filter((account) => figuresOf(account).some((figure) => figure !== 0))
    .map((account) => `${[account.id, ...figuresOf(account)].join(',')}\n`)
    .toSorted();
  return createHash('sha256').update(lines.join('')).digest('hex');
}

function compare(
  recomputed: ReadonlyMap<string, StoredAccount>,
  stored: readonly StoredAccount[],
  find: (finding: Finding) => void,
): void {
  const byId = new Map(stored.map((account) => [account.id, account]));
  let sum = 0n;
  for (const account of stored) {
    sum += BigInt(account.credits_posted) - BigInt(account.debits_posted);
  }
  if (sum !== 0n) {
    find({ rule: 'I1', where: 'all accounts', what: `debits and credits differ by ${sum} uUSD` });
  }
  for (const id of new Set([...recomputed.keys(), ...byId.keys()])) {
    const [journal, cached] = [recomputed, byId].map((from) => figuresOf(from.get(id)).join(', '));
    if (journal === cached) continue;
    const what = `debits, credits, pending are stored as ${cached}; the journal results in ${journal}`;
    find({ rule: 'I15', where: id, what });
  }
}

function checkNotNegative(account: StoredAccount, find: (finding: Finding) => void): void {
  const isRenter = account.id.startsWith('user:') || account.id.startsWith('granted:');
  const free = balanceOf(account) - account.debits_pending;
  if (isRenter && free < 0) {
    find({ rule: 'I2', where: account.id, what: `is ${-free} uUSD below 0` });
  }
}

function balanceOf(account: StoredAccount | undefined): number {
  return account === undefined ? 0 : account.credits_posted - account.debits_posted;
}

function figuresOf(account: StoredAccount | undefined): number[] {
  if (account === undefined) return [0, 0, 0];
  return [account.debits_posted, account.credits_posted, account.debits_pending];
}
