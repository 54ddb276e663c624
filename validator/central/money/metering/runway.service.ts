/** Keeps the schedule true to what an account has and what its pods cost: when it runs out, and when to warn of it. */

import type { Db } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import { clearDue, setDue } from '../../platform/schedule/due.ts';
import { nextWarningAt } from '../../platform/schedule/warnings.ts';
import { walletOf } from '../ledger/wallet.service.ts';
import { runsOutAt } from './runway.ts';
import { fundsOf } from './settle.service.ts';
import { burningOf, burnPerHour } from './settlement.ts';
import { listBurning } from './usage.store.ts';

/** What an account's pods cost per hour, and when its money is used up as things are; null: never. */
export async function standingOf(
  db: Db,
  accountId: string,
): Promise<{ burnPerHour: number; runsOutAtMs: number | null }> {
  const burning = await listBurning(db, accountId);
  if (burning.length === 0) return { burnPerHour: 0, runsOutAtMs: null };
  const funds = await fundsOf(await walletOf(db, accountId), db, burning);
  return {
    burnPerHour: burnPerHour(burning),
    runsOutAtMs: runsOutAt(funds, burning.map(burningOf)),
  };
}

/** When the account's money is used up as things are; null: never. */
export async function accountRunsOutAt(db: Db, accountId: string): Promise<number | null> {
  return (await standingOf(db, accountId)).runsOutAtMs;
}

/**
 * To be called in the transaction of every change of what an account has or of which pods it pays for; but not for
 * what the meter charges, which changes nothing. Holds the account's row from then on.
 */
export async function runwayChanged(tx: Db, accountId: string, nowMs: number): Promise<void> {
  await lockRow(tx, 'accounts', accountId);
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
