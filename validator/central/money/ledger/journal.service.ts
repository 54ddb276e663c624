/** The journal of an account: every line with its cause and the balance after it, compared with the stored balance. */

import { microToUsd } from '#shared/api/money.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import type { TransferKind } from '../../platform/database/tables/money.ts';
import type { Database, Db } from '../../platform/database/tables.ts';
import type { LedgerAccount } from './double-entry.ts';
import {
  foldOf,
  type JournalRow,
  lastSeqBefore,
  listJournal,
  type Opening,
  openingOf,
} from './journal.store.ts';
import type { LedgerLine, LedgerPage, LedgerQuery } from './ledger.schemas.ts';
import { grantedAccount, lockedWalletOf, paidAccount, unreadable } from './wallet.service.ts';

const KINDS: Record<TransferKind, LedgerLine['kind']> = {
  direct: 'posted',
  pending: 'held',
  post: 'hold_spent',
  void: 'hold_released',
};

/**
 * Returns one page of the journal in the requested order. The journal begins after the last archived month. Rejects
 * with `account_balance_invalid` if the account's lines do not sum to its stored balance.
 */
export function journalPage(
  db: Database,
  accountId: string,
  { since, after, before = Number.MAX_SAFE_INTEGER, order, limit }: LedgerQuery,
): Promise<LedgerPage> {
  const [paidId, grantedId] = [paidAccount(accountId), grantedAccount(accountId)];
  const own = [paidId, grantedId];
  // The lock excludes concurrent postings, so that page, sums and balance are consistent.
  return db.transaction().execute(async (tx) => {
    const wallet = await lockedWalletOf(tx, accountId);
    const opening = await openingOf(tx, paidId, grantedId);
    const first = Math.max(after, opening.seq);
    const from = since === undefined ? first : Math.max(first, await lastSeqBefore(tx, own, since));
    const listed = await listJournal(tx, own, { after: from, before, limit, order });
    const rows = order === 'asc' ? listed : listed.toReversed();
    const sums = await sumsOf(tx, own, rows[0]?.seq ?? 0, opening);
    const { paid, granted, held } = wallet;
    if (sums.balance !== paid + granted || sums.held !== held) throw unreadable();
    const lines = linesOf(rows, own, sums.balanceBefore);
    const next = listed.length < limit ? null : (listed.at(-1)?.seq ?? null);
    return order === 'asc'
      ? { lines, next_after: next, next_before: null }
      : { lines: lines.toReversed(), next_after: null, next_before: next };
  });
}

async function sumsOf(tx: Db, own: readonly LedgerAccount[], before: number, opening: Opening) {
  const sums = { balance: 0, balanceBefore: 0, held: 0 };
  for (const id of own) {
    const { debits, credits, pending } = await foldOf(tx, id, before, opening);
    sums.balance += credits.all - debits.all;
    sums.balanceBefore += credits.before - debits.before;
    sums.held += pending.all;
  }
  return sums;
}

function linesOf(
  rows: readonly JournalRow[],
  own: readonly string[],
  balanceBefore: number,
): LedgerLine[] {
  let balance = balanceBefore;
  return rows.map((row) => {
    const isPayer = own.includes(row.debit_id);
    const [account, other] = isPayer
      ? [row.debit_id, row.credit_id]
      : [row.credit_id, row.debit_id];
    const isMoved = row.kind === 'direct' || row.kind === 'post';
    const moved = isMoved && !own.includes(other) ? row.amount_uusd : 0;
    const amount = isPayer ? -moved : moved;
    balance += amount;
    return {
      seq: row.seq,
      at: naiveUtc(row.at_ms),
      group_id: String(row.group_id),
      kind: KINDS[row.kind],
      credit: account.startsWith('user:') ? 'paid' : 'granted',
      counterpart: counterpartOf(other, own),
      amount_usd: microToUsd(amount),
      held_usd: isPayer ? microToUsd(heldBy(row)) : 0,
      balance_usd: microToUsd(balance),
      cause_type: row.cause_type,
      cause_id: row.cause_id,
    };
  });
}

function heldBy({ kind, amount_uusd, pending_uusd }: JournalRow): number {
  return kind === 'pending' ? amount_uusd : -(pending_uusd ?? 0);
}

/** Hides the ids of other parties' accounts. */
function counterpartOf(id: string, own: readonly string[]): string {
  const [kind = id] = id.split(':');
  const isPersonal = ['user', 'granted', 'provider', 'referral'].includes(kind);
  return isPersonal && !own.includes(id) ? kind : id;
}
