/**
 * Plans settlements: the instant up to which each pod is charged, and the transfers that pay for it. Money moves from
 * the renter through `clearing:usage` to the provider and the platform. See ../README.md. Pure.
 */
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import { type Cause, causedBy, type LedgerAccount, type Leg } from '../ledger/double-entry.ts';
import { netFee } from '../ledger/shares.ts';
import { isGranted, type Portion, spendLegs, type Wallet } from '../ledger/wallet.service.ts';
import type { MeterBounds } from './burning.store.ts';
import { chargeOf, dayShares, paidIn } from './charge.plan.ts';
import { burningOf, burnPerHour, type Funds, runsOutAt, spendsOutAt } from './runway.ts';
import type { SettlementRow } from './settlement.store.ts';
import type { Meter } from './usage.store.ts';

const USAGE = 'clearing:usage';

/** The ledger account of a provider's earnings. */
export const providerAccount = (providerId: string): LedgerAccount => `provider:${providerId}`;

/** A meter, and the instant up to which it is settled. */
export type ToSettle = { meter: Meter; untilMs: number };

export type BoundedMeter = Meter & MeterBounds;

export type AccountPlan = {
  accountId: string;
  meters: readonly BoundedMeter[];
  /** Time at which the account's money runs out; null if never. */
  cutOffMs: number | null;
  /** One entry for each of `meters`, in the same order. */
  due: { meter: BoundedMeter; untilMs: number }[];
  /** For each pod, the latest instant up to which it may have been used. */
  ends: { podId: string; endMs: number }[];
};

/** Plans the time of an account's billable pods that is charged now. `fundsUusd` includes holds for these pods. */
export function planAccount(
  accountId: string,
  meters: readonly BoundedMeter[],
  fundsUusd: number,
  nowMs: number,
): AccountPlan {
  const cutOffMs = runsOutAt(fundsUusd, meters.map(burningOf));
  return {
    accountId,
    meters,
    cutOffMs,
    due: meters.map((meter) => ({ meter, untilMs: chargedUntil(meter, cutOffMs, nowMs) })),
    ends: meters.map((meter) => ({ podId: meter.pod_id, endMs: endOf(meter, cutOffMs, nowMs) })),
  };
}

/** Returns the account's funds after a settlement, which does not move the cut-off. */
export function fundsAfter({ available }: Wallet, { meters, cutOffMs }: AccountPlan): Funds {
  return { available, burnPerHour: burnPerHour(meters), runsOutAtMs: cutOffMs };
}

/**
 * Returns the instant up to which use is certain: the last contact at which the agent reported the pod as running, but
 * at most the end of the pod's time. A late settlement therefore still charges up to the instant that was due.
 */
function chargedUntil(meter: BoundedMeter, cutOffMs: number | null, nowMs: number): number {
  const endMs = endOf(meter, cutOffMs, nowMs);
  return Math.max(meter.settled_to_ms, Math.min(endMs, meter.seen_at ?? endMs));
}

/** Returns now, or the earlier instant at which the pod's time ended, even if no job has acted on that end yet. */
export function endOf(meter: BoundedMeter, cutOffMs: number | null, nowMs: number): number {
  const ends = limitsOf(meter, cutOffMs);
  if (meter.idle_stop_at !== null) ends.push(meter.idle_stop_at);
  return Math.min(nowMs, ...ends);
}

/** Times at which the pod's money, limits or node end its time, in any order. Idle time is not a limit. */
export function limitsOf(meter: BoundedMeter, cutOffMs: number | null): number[] {
  const limit = meter.max_spend_uusd;
  const limitMs = limit === null ? null : spendsOutAt(burningOf(meter), limit);
  const { removal_at, leaves_at, key_stops_at } = meter;
  return [removal_at, leaves_at, key_stops_at, cutOffMs, limitMs].filter((ms) => ms !== null);
}

/** Part of a charge that the pod's hold has paid, for a pod without a hold. */
export const NO_HOLD_PAYMENT: Portion = { uusd: 0, granted: 0 };

/** Group of ledger transfers with their cause. */
export type Posting = { legs: Leg[]; cause: Cause };
/** A settlement before its ledger group has an id. */
export type PlannedRow = Omit<SettlementRow, 'group_id'>;

export type SettlementPlan = {
  /** One posting for each row, in the same order. */
  postings: Posting[];
  rows: PlannedRow[];
  /** Wallets after the settlement, by account. */
  wallets: Map<string, Wallet>;
  /** Paid credit spent by each account, excluding granted credit and the part that the platform absorbs. */
  paidBy: Map<string, number>;
};

/**
 * Plans the settlement of meters that all owe an amount, in order: an account's earlier meters are paid first. `byHold`
 * maps each pod to the amount that its hold has already paid. Throws if an account has no wallet.
 */
export function planSettlements(
  due: readonly ToSettle[],
  before: ReadonlyMap<string, Wallet>,
  byHold: ReadonlyMap<string, Portion>,
  nowMs: number,
): SettlementPlan {
  const plan: SettlementPlan = {
    postings: [],
    rows: [],
    wallets: new Map(before),
    paidBy: new Map(),
  };
  for (const { meter, untilMs } of due) {
    const wallet = plan.wallets.get(meter.account_id);
    if (wallet === undefined) throw new Error(`account ${meter.account_id} has no wallet`);
    const held = byHold.get(meter.pod_id) ?? NO_HOLD_PAYMENT;
    const planned = planSettlement(meter, untilMs, wallet, held);
    plan.wallets.set(meter.account_id, planned.wallet);
    plan.postings.push({ legs: planned.legs, cause: usageCause(planned.row, nowMs) });
    plan.rows.push(planned.row);
    const paid = paidCreditIn(meter, planned.row);
    plan.paidBy.set(meter.account_id, (plan.paidBy.get(meter.account_id) ?? 0) + paid);
  }
  return plan;
}

/**
 * Plans the settlement of one meter up to `untilMs`. The renter pays the available amount, and the platform absorbs the
 * remainder.
 */
export function planSettlement(
  meter: Meter,
  untilMs: number,
  wallet: Wallet,
  held: Portion = NO_HOLD_PAYMENT,
): { legs: Leg[]; row: PlannedRow; wallet: Wallet } {
  const charge = chargeOf(meter, untilMs);
  const open = charge.chargeUusd - held.uusd;
  const paid = Math.min(open, wallet.available);
  const absorbed = open - paid;
  const spent = spendLegs(wallet, paid, USAGE);
  const granted = spent
    .filter(({ debit }) => isGranted(debit))
    .reduce((sum, { amountUusd }) => sum + amountUusd, 0);
  const legs: Leg[] = [
    ...spent,
    { debit: 'platform:absorbed', credit: USAGE, amountUusd: absorbed },
    { debit: USAGE, credit: providerAccount(meter.provider_id), amountUusd: charge.providerUusd },
    { debit: USAGE, credit: 'platform:fee', amountUusd: charge.feeUusd },
  ];
  const totals = {
    charged_uusd: meter.charged_uusd + charge.chargeUusd,
    granted_uusd: meter.granted_uusd + granted + held.granted,
    absorbed_uusd: meter.absorbed_uusd + absorbed,
  };
  return {
    legs: legs.filter(({ amountUusd }) => amountUusd > 0),
    row: {
      pod_id: meter.pod_id,
      tick_seq: meter.tick_seq + 1,
      days: dayShares(meter, untilMs),
      to_ms: untilMs,
      total_uusd: totals.charged_uusd,
      provider_total_uusd: meter.provider_uusd + charge.providerUusd,
      granted_uusd: totals.granted_uusd,
      absorbed_uusd: totals.absorbed_uusd,
      provider_id: meter.provider_id,
      executor_id: meter.executor_id,
      gpu_count: meter.gpu_count,
      fee_uusd: netFee(paidIn(totals)) - netFee(paidIn(meter)),
    },
    wallet: {
      ...wallet,
      paid: wallet.paid - (paid - granted),
      granted: wallet.granted - granted,
      available: wallet.available - paid,
    },
  };
}

function paidCreditIn(before: Meter, after: PlannedRow): number {
  const { total_uusd: charged_uusd, granted_uusd, absorbed_uusd } = after;
  return paidIn({ charged_uusd, granted_uusd, absorbed_uusd }) - paidIn(before);
}

/**
 * Returns the unique cause of a settlement. Each settlement number of a pod can be posted only once, so that two
 * processes cannot charge the same time.
 */
function usageCause(row: Pick<PlannedRow, 'pod_id' | 'tick_seq'>, atMs: number): Cause {
  const id = `${row.pod_id}:${row.tick_seq}`;
  return causedBy(SYSTEM_ACTOR, { type: 'usage', id, atMs, once: true });
}
