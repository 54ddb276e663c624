/** Settles whole accounts: everything that their pods have used up to where it is beyond doubt. */
import type { Db } from '../../platform/database/tables.ts';
import { ensureDue } from '../../platform/schedule/due.ts';
import { type Wallet, walletOf } from '../ledger/wallet.service.ts';
import type { Funds } from '../low-balance/low-balance.rule.ts';
import { runsOutAt, spendsOutAt } from './runway.ts';
import { fundsOf, settleMeters, type ToSettle, walletsOf } from './settle.service.ts';
import { burningOf, burnPerHour } from './settlement.ts';
import { listBurningOf, type Meter, type MeterBounds } from './usage.store.ts';

/** An account after its settlement. `ends`: up to when each of its pods may have been used, as far as it is known here. */
export type SettledAccount = {
  accountId: string;
  left: Funds;
  ends: { podId: string; endMs: number }[];
};

/** Settles all burning meters of these accounts, whose rows the caller holds; those without any are absent. */
export async function settleAccounts(
  tx: Db,
  accountIds: readonly string[],
  nowMs: number,
): Promise<SettledAccount[]> {
  const wallets = await walletsOf(tx, accountIds);
  const byAccount = Map.groupBy(await listBurningOf(tx, accountIds), (meter) => meter.account_id);
  const due: ToSettle[] = [];
  const judged: { accountId: string; meters: Bounded[]; cutOffMs: number | null }[] = [];
  for (const [accountId, meters] of byAccount) {
    const wallet = wallets.get(accountId);
    if (wallet === undefined) continue;
    const funds = await fundsOf(wallet, tx, meters);
    const cutOffMs = runsOutAt(funds, meters.map(burningOf));
    // It is there already, unless somebody took money away without telling the runway.
    if (cutOffMs !== null && cutOffMs <= nowMs) await ensureDue(tx, 'cut-off', accountId, cutOffMs);
    for (const meter of meters) due.push({ meter, untilMs: meteredUntil(meter, cutOffMs, nowMs) });
    judged.push({ accountId, meters, cutOffMs });
  }
  await settleMeters(tx, due, wallets, nowMs);
  return judged.map(({ accountId, meters, cutOffMs }) => ({
    accountId,
    left: fundsLeft(wallets.get(accountId), meters, cutOffMs),
    ends: meters.map((meter) => ({ podId: meter.pod_id, endMs: endOf(meter, cutOffMs, nowMs) })),
  }));
}

type Bounded = Meter & MeterBounds;

/** What a settlement takes leaves the instant at which the money is used up where it is. */
function fundsLeft(
  wallet: Wallet | undefined,
  burning: readonly Meter[],
  cutOffMs: number | null,
): Funds {
  const available = wallet?.available ?? 0;
  return { available, burnPerHour: burnPerHour(burning), runsOutAtMs: cutOffMs };
}

/**
 * Up to when a pod's use is beyond doubt: its agent has said that it runs, and nothing that ends its time lies before.
 * What is due is thus charged up to its own instant, however late somebody wakes up.
 */
function meteredUntil(meter: Bounded, cutOffMs: number | null, nowMs: number): number {
  const endMs = endOf(meter, cutOffMs, nowMs);
  return Math.max(meter.settled_to_ms, Math.min(endMs, meter.seen_at ?? endMs));
}

/**
 * Up to when a pod that costs money was used, `atMs` at the latest: where its removal, its limit, the notice of its node or
 * the money has ended its time before that, it is that instant, whatever happens to the pod before somebody acts on it.
 */
export async function usedAtMost(tx: Db, meter: Meter, atMs: number): Promise<number> {
  const burning = await listBurningOf(tx, [meter.account_id]);
  const own = burning.find(({ pod_id: id }) => id === meter.pod_id);
  if (own === undefined) return atMs;
  const funds = await fundsOf(await walletOf(tx, meter.account_id), tx, burning);
  // Whether it was unused until it was to stop for that is not known here: what was not seen may have been use.
  return endOf({ ...own, idle_stop_at: null }, runsOutAt(funds, burning.map(burningOf)), atMs);
}

/** Now, or where its time has ended before that though nobody has acted on it yet. */
function endOf(meter: Bounded, cutOffMs: number | null, nowMs: number): number {
  const cap = meter.max_spend_uusd;
  const capMs = cap === null ? null : spendsOutAt(burningOf(meter), cap);
  const { removal_at, leaves_at, idle_stop_at } = meter;
  const bounds = [removal_at, leaves_at, idle_stop_at, cutOffMs, capMs].filter((ms) => ms !== null);
  return Math.min(nowMs, ...bounds);
}
