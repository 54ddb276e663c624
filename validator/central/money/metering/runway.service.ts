/**
 * Updates the schedule when money changes: when an account runs out of money, when to warn, and when a pod reaches its
 * spend limit.
 */
import type { Db } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import { clearDue, setDue } from '../../platform/schedule/due.ts';
import { nextWarningAt } from '../../platform/schedule/warnings.ts';
import { heldBy } from '../ledger/hold.service.ts';
import { type Wallet, walletOf } from '../ledger/wallet.service.ts';
import { listBurning } from './burning.store.ts';
import { updateKeyStops } from './key-budget.service.ts';
import { burningOf, runsOutAt, spendsOutAt } from './runway.ts';
import { findMeter, type Meter, spendLimitOf } from './usage.store.ts';

/** Returns the time at which the account's money runs out at its present cost; null if never. */
export async function accountRunsOutAt(db: Db, accountId: string): Promise<number | null> {
  const burning = await listBurning(db, accountId);
  if (burning.length === 0) return null;
  const funds = await fundsFor(db, await walletOf(db, accountId), burning);
  return runsOutAt(funds, burning.map(burningOf));
}

/** Micro-dollars that an account can spend on these pods: the available amount plus the holds for these pods. */
export async function fundsFor(db: Db, wallet: Wallet, burning: readonly Meter[]): Promise<number> {
  let funds = wallet.available;
  for (const { hold_id } of burning) if (hold_id !== null) funds += await heldBy(db, hold_id);
  return funds;
}

/**
 * Reschedules the cut-off, the next warning, and the stops of API keys with budgets. Call it in every transaction that
 * changes an account's money or its billable pods. Settlements need no call, because they do not move the cut-off.
 * Locks the account's row.
 */
export async function updateRunway(tx: Db, accountId: string, nowMs: number): Promise<void> {
  await lockRow(tx, 'accounts', accountId);
  await updateKeyStops(tx, accountId, nowMs);
  const atMs = await accountRunsOutAt(tx, accountId);
  if (atMs === null) {
    await clearDue(tx, 'cut-off', accountId);
    await clearDue(tx, 'balance-warning', accountId);
    return;
  }
  await setDue(tx, 'cut-off', accountId, atMs);
  const warnAtMs = nextWarningAt(atMs, nowMs);
  if (warnAtMs === null) await clearDue(tx, 'balance-warning', accountId);
  else await setDue(tx, 'balance-warning', accountId, warnAtMs);
}

/**
 * Reschedules the stop of a pod at its `max_spend_usd`. Call it when the meter starts or stops, or when the limit
 * changes.
 */
export async function updateSpendLimitDue(tx: Db, meter: Meter): Promise<void> {
  const atMs = await limitReachedAt(tx, meter);
  if (atMs === null) await clearDue(tx, 'spend-cap', meter.pod_id);
  else await setDue(tx, 'spend-cap', meter.pod_id, atMs);
}

/** Returns the time at which a pod reaches its spend limit at its present cost; null if never. */
export async function spendLimitReachedAt(db: Db, podId: string): Promise<number | null> {
  const meter = await findMeter(db, podId);
  return meter === undefined ? null : limitReachedAt(db, meter);
}

/** Returns true if a stopped pod has cost less than its spend limit, or has no limit. */
export async function isBelowSpendLimit(tx: Db, podId: string): Promise<boolean> {
  const meter = await findMeter(tx, podId);
  const limit = await spendLimitOf(tx, podId);
  return meter !== undefined && (limit === null || limit > meter.charged_uusd);
}

async function limitReachedAt(db: Db, meter: Meter): Promise<number | null> {
  const limit = meter.is_billable === 1 ? await spendLimitOf(db, meter.pod_id) : null;
  return limit === null ? null : spendsOutAt(burningOf(meter), limit);
}
