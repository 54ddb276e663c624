/**
 * Closes months of the ledger: stores the sums, hashes and balances of a month that has ended. The month of a transfer
 * is determined by the order of transfers: a month ends before the first transfer that was posted after its end.
 */
import { type Clock, createEventLoopYield, parseIsoTime } from '#shared/runtime/clock.ts';
import type { Database, LedgerMonth } from '../../platform/database/tables.ts';
import { transfersAfter } from './audit.store.ts';
import { balanceHash, type StoredAccount } from './audit.ts';
import { transferLine } from './export-line.ts';
import { firstTransferMs, insertMonth, lastClosedMonth, listMonthBalances } from './month.store.ts';
import { chainHash, createMonthDigest, monthOf } from './month-digest.ts';

const HOUR_MS = 3_600_000;
/** Least time after the end of a month: longer than any transaction that began in the month. */
export const LEAST_CLOSE_MS = HOUR_MS;

/**
 * Closes, in order, all months that ended at least `afterMs` ago, and returns them. Safe in several processes at once,
 * because a month is stored once, in one transaction; nothing else is written.
 */
export async function closeMonths(
  { db, clock }: { db: Database; clock: Clock },
  afterMs: number,
): Promise<LedgerMonth[]> {
  const closed: LedgerMonth[] = [];
  for (;;) {
    const before = await lastClosedMonth(db);
    const name = before === undefined ? await firstMonth(db) : monthOf(endOfMonth(before.month));
    if (name === null || clock.now() < endOfMonth(name) + Math.max(afterMs, LEAST_CLOSE_MS)) {
      return closed;
    }
    closed.push(await closeMonth({ db, clock }, name, before));
  }
}

async function firstMonth(db: Database): Promise<string | null> {
  const atMs = await firstTransferMs(db);
  return atMs === undefined ? null : monthOf(atMs);
}

async function closeMonth(
  { db, clock }: { db: Database; clock: Clock },
  name: string,
  before: LedgerMonth | undefined,
): Promise<LedgerMonth> {
  const yieldToEventLoop = createEventLoopYield(clock);
  const balances = new Map<string, StoredAccount>();
  const earlier = before === undefined ? [] : await listMonthBalances(db, before.month);
  for (const account of earlier) balances.set(account.id, { ...account });
  const endMs = endOfMonth(name);
  const digest = createMonthDigest();
  const firstSeq = (before?.last_seq ?? 0) + 1;
  let lastSeq = firstSeq - 1;
  for await (const transfer of transfersAfter(db, lastSeq)) {
    if (transfer.at_ms >= endMs) break;
    digest.add(transferLine(transfer));
    apply(balances, transfer);
    lastSeq = transfer.seq;
    await yieldToEventLoop();
  }
  const accounts = [...balances.values()];
  const entry = {
    month: name,
    first_seq: firstSeq,
    last_seq: lastSeq,
    ...digest.sums(),
    balance_hash: balanceHash(accounts),
  };
  const chained = chainHash(before?.chain_hash ?? null, entry);
  const month = { ...entry, chain_hash: chained, closed_at: clock.now() };
  await db.transaction().execute((tx) => insertMonth(tx, month, accounts));
  return month;
}

type Applied = Awaited<ReturnType<ReturnType<typeof transfersAfter>['next']>>['value'];

/** Adds a transfer to the balances. */
function apply(balances: Map<string, StoredAccount>, transfer: NonNullable<Applied>): void {
  const { debit_id, credit_id, amount_uusd, kind, pending_uusd } = transfer;
  const accountOf = (id: string): StoredAccount => {
    const known = balances.get(id) ?? {
      id,
      debits_posted: 0,
      credits_posted: 0,
      debits_pending: 0,
    };
    balances.set(id, known);
    return known;
  };
  if (kind === 'direct' || kind === 'post') {
    accountOf(debit_id).debits_posted += amount_uusd;
    accountOf(credit_id).credits_posted += amount_uusd;
  }
  if (kind === 'pending') accountOf(debit_id).debits_pending += amount_uusd;
  if (pending_uusd !== null) accountOf(debit_id).debits_pending -= pending_uusd;
}

/** First instant after a month. */
function endOfMonth(month: string): number {
  const [year = 0, number = 0] = month.split('-').map(Number);
  const next = number === 12 ? `${year + 1}-01` : `${year}-${String(number + 1).padStart(2, '0')}`;
  const endMs = parseIsoTime(`${next}-01T00:00:00Z`);
  if (endMs === null) throw new Error(`${month} is not a month`);
  return endMs;
}
