/**
 * What comes before every change that leaves an account less to spend, or a pod a lower limit: what its pods have used is
 * paid out of what was there, and the time until now is theirs, whatever the change is. Without it a new limit would
 * end a pod in the past, and what it used until now would be nobody's.
 */

import type { Db } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import { heldBy } from '../ledger/hold.service.ts';
import type { LedgerAccount, Leg } from '../ledger/ledger-account.ts';
import { paidAccount, type Wallet, walletOf } from '../ledger/wallet.service.ts';
import { FLOOR_MS, rentalFloor } from './rental-floor.ts';
import { runwayChanged } from './runway.service.ts';
import { settleAccounts } from './settle-accounts.ts';
import { costUntil } from './settlement.ts';
import { listBurning, listStartingAgain, placeChanges } from './usage.store.ts';

declare const SETTLED: unique symbol;

/** An account that `settledFirst` has settled in this transaction; nothing else makes one. */
export type Settled = {
  readonly accountId: string;
  /** What it has now. */
  readonly wallet: Wallet;
  /** What of `wallet.available` is its pods': as `keptFor` says. */
  readonly keptUusd: number;
  /** Whether any pod of it costs money now. */
  readonly isBurning: boolean;
  readonly [SETTLED]: true;
};

/**
 * Settles an account up to now, and holds its row from then on; `lockRow` of pods comes before. Follow the change with
 * `fundsLowered` or `limitChanged`.
 */
export async function settledFirst(tx: Db, accountId: string, nowMs: number): Promise<Settled> {
  await lockRow(tx, 'accounts', accountId);
  const isBurning = (await listBurning(tx, accountId)).length > 0;
  if (isBurning) {
    const settled = await settleAccounts(tx, [accountId], nowMs);
    await placeChanges(
      tx,
      settled.flatMap(({ ends }) => ends),
    );
  }
  const keptUusd = await keptFor(tx, accountId, nowMs);
  const wallet = await walletOf(tx, accountId);
  return { accountId, wallet, keptUusd, isBurning } as Settled;
}

/**
 * What an account's pods need for their next 15 minutes, beyond what is held for them: those that run, and those that
 * stood still and start again, whose rental held that once.
 */
export async function keptFor(tx: Db, accountId: string, nowMs: number): Promise<number> {
  let kept = await neededUntil(tx, accountId, nowMs + FLOOR_MS);
  for (const meter of await listStartingAgain(tx, accountId)) {
    kept += rentalFloor(meter.price_uusd_per_gpu_hour, meter.gpu_count);
  }
  return kept;
}

/** What all pods that cost money now cost until then, less what was charged and what is held for them. */
async function neededUntil(tx: Db, accountId: string, untilMs: number): Promise<number> {
  let needed = 0;
  for (const meter of await listBurning(tx, accountId)) {
    needed += Math.max(0, costUntil(meter, untilMs).uusd - meter.charged_uusd);
    if (meter.hold_id !== null) needed -= await heldBy(tx, meter.hold_id);
  }
  return Math.max(0, needed);
}

/** The leg that takes paid credit from an account for anything but use. */
export function takePaid({ accountId }: Settled, amountUusd: number, to: LedgerAccount): Leg {
  return { debit: paidAccount(accountId), credit: to, amountUusd };
}

/** Less is available than before: pods may stop earlier. */
export async function fundsLowered(
  tx: Db,
  { accountId, isBurning }: Settled,
  nowMs: number,
): Promise<void> {
  if (isBurning) await runwayChanged(tx, accountId, nowMs);
}
