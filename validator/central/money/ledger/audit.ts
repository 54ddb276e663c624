/**
 * Adds the journal up from nothing and compares: what makes books of double entry true (invariants I1 to I4, I8, I12,
 * I15 to I17 of README, "Money"). Pure.
 */

import { createHash } from 'node:crypto';
import type { TransferKind } from '../../platform/database/tables/money.ts';

/** A transfer as it is stored. */
export type StoredTransfer = {
  seq: number;
  group_id: number;
  debit_id: string;
  credit_id: string;
  amount_uusd: number;
  kind: TransferKind;
  pending_seq: number | null;
};

/** What an account comes to, as it is stored or added up. */
export type StoredAccount = {
  id: string;
  debits_posted: number;
  credits_posted: number;
  debits_pending: number;
};

/** A rule that is broken, and where. */
export type Finding = { rule: string; where: string; what: string };

/** Through which money only passes: nothing stays there. */
const EMPTY_ACCOUNTS = ['clearing:usage', 'clearing:refund', 'rounding'];

export type Audit = ReturnType<typeof createAudit>;

/** Takes every transfer in order, then what is stored of accounts. */
export function createAudit(find: (finding: Finding) => void) {
  const accounts = new Map<string, StoredAccount>();
  const open = new Map<number, StoredTransfer>();
  /** By hold that has not ended: how many of its transfers are open, and how many are not. */
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
      find({ rule: 'I4', where, what: `ends ${transfer.pending_seq}, which is not open` });
      return;
    }
    const { debit_id, credit_id, amount_uusd, group_id } = pending;
    const fits =
      transfer.kind === 'void'
        ? transfer.amount_uusd === amount_uusd
        : transfer.amount_uusd <= amount_uusd;
    if (!fits || transfer.debit_id !== debit_id || transfer.credit_id !== credit_id) {
      find({ rule: 'I4', where, what: `does not fit ${pending.seq}, which it ends` });
    }
    open.delete(pending.seq);
    accountOf(debit_id).debits_pending -= amount_uusd;
    const hold = holds.get(group_id) ?? { open: 0, ended: 0 };
    holds.set(group_id, { open: hold.open - 1, ended: hold.ended + 1 });
    if (hold.open <= 1) holds.delete(group_id);
  }

  /** No more is set aside to be paid out than was earned and not paid. */
  function judgePayout({ seq, debit_id }: StoredTransfer): void {
    const account = accountOf(debit_id);
    const free = balanceOf(account) - account.debits_pending;
    if (free >= 0) return;
    find({
      rule: 'I16',
      where: `transfer ${seq}`,
      what: `pays ${-free} uUSD more than was earned`,
    });
  }

  return {
    take(transfer: StoredTransfer): void {
      const { seq, debit_id, credit_id, amount_uusd, kind } = transfer;
      const where = `transfer ${seq}`;
      if (seq <= last) find({ rule: 'I3', where, what: `comes after transfer ${last}` });
      last = seq;
      if (!Number.isSafeInteger(amount_uusd) || amount_uusd <= 0 || debit_id === credit_id) {
        find({ rule: 'I1', where, what: 'is no amount from one account to another' });
      }
      if (kind === 'pending') {
        open.set(seq, transfer);
        const hold = holds.get(transfer.group_id) ?? { open: 0, ended: 0 };
        holds.set(transfer.group_id, { ...hold, open: hold.open + 1 });
        accountOf(debit_id).debits_pending += amount_uusd;
        if (credit_id === 'external:payout') judgePayout(transfer);
      }
      if (kind === 'direct' || kind === 'post') post(transfer);
      if (kind === 'post' || kind === 'void') end(transfer);
    },

    /** The holds that have not ended. */
    openHolds: (): number[] => [...holds.keys()],

    /** Compares with what is stored, and returns the hash of the balances that the journal gives. */
    finish(stored: readonly StoredAccount[]): string {
      for (const [hold, { ended }] of holds) {
        if (ended > 0) find({ rule: 'I4', where: `hold ${hold}`, what: 'has ended in part' });
      }
      compare(accounts, stored, find);
      for (const account of [...accounts.values(), ...stored]) judge(account, find);
      for (const id of EMPTY_ACCOUNTS) {
        const left = balanceOf(accounts.get(id));
        if (left !== 0) find({ rule: 'I8', where: id, what: `keeps ${left} uUSD` });
      }
      return balanceHash([...accounts.values()]);
    },
  };
}

/** SHA-256 over `id,debits,credits,pending` and a line break of each account that is not empty, in the order of their names. */
export function balanceHash(accounts: readonly StoredAccount[]): string {
  const lines = accounts
    .filter((account) => figuresOf(account).some((figure) => figure !== 0))
    .map((account) => `${[account.id, ...figuresOf(account)].join(',')}\n`)
    .toSorted();
  return createHash('sha256').update(lines.join('')).digest('hex');
}

function compare(
  added: ReadonlyMap<string, StoredAccount>,
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
  for (const id of new Set([...added.keys(), ...byId.keys()])) {
    const [journal, cached] = [added, byId].map((from) => figuresOf(from.get(id)).join(', '));
    if (journal === cached) continue;
    const what = `debits, credits, pending are stored as ${cached}; the journal gives ${journal}`;
    find({ rule: 'I15', where: id, what });
  }
}

function judge(account: StoredAccount, find: (finding: Finding) => void): void {
  const isRenters = account.id.startsWith('user:') || account.id.startsWith('granted:');
  const free = balanceOf(account) - account.debits_pending;
  if (isRenters && free < 0) {
    find({ rule: 'I2', where: account.id, what: `is ${-free} uUSD below nothing` });
  }
}

function balanceOf(account: StoredAccount | undefined): number {
  return account === undefined ? 0 : account.credits_posted - account.debits_posted;
}

function figuresOf(account: StoredAccount | undefined): number[] {
  if (account === undefined) return [0, 0, 0];
  return [account.debits_posted, account.credits_posted, account.debits_pending];
}
