/** What a settlement of pods posts: from their renter through clearing to provider and platform (README, "Money"). Pure. */
import { startOfDay } from '#shared/runtime/clock.ts';
import type { LedgerAccount, Leg } from '../ledger/ledger-account.ts';
import { spendLegs, type Wallet } from '../ledger/wallet.service.ts';
import type { Settled } from './billing.store.ts';
import {
  addTime,
  chargeBetween,
  costOfParts,
  NO_COST,
  partsOf,
  type Rate,
  ratePerHour,
} from './meter.ts';
import type { Burning } from './runway.ts';
import type { Meter, SegmentRow } from './usage.store.ts';

const USAGE = 'clearing:usage';

/** What a provider has earned. */
export const providerAccount = (providerId: string): LedgerAccount => `provider:${providerId}`;

/** What a meter pays while it is billable. */
export function rateOf(meter: Meter): Rate {
  return { priceUusdPerGpuHour: meter.price_uusd_per_gpu_hour, gpus: meter.gpu_count };
}

/** What billable meters cost together, micro-dollars per hour. */
export function burnPerHour(meters: readonly Meter[]): number {
  return Number(meters.reduce((sum, meter) => sum + ratePerHour(rateOf(meter)), 0n));
}

/** A billable meter as the runway counts it. */
export function burningOf(meter: Meter): Burning {
  return {
    closed: { uusd: meter.closed_uusd, rest: meter.closed_rest },
    rate: rateOf(meter),
    sinceMs: meter.since_ms,
    chargedUusd: meter.charged_uusd,
    changedMs: meter.changed_ms,
  };
}

/** Cost of everything metered so far, the present segment up to `untilMs`. */
export function costUntil(meter: Meter, untilMs: number) {
  const closed = { uusd: meter.closed_uusd, rest: meter.closed_rest };
  return meter.is_billable === 1
    ? addTime(closed, rateOf(meter), untilMs - meter.since_ms)
    : closed;
}

/** What a pod that is settled would have cost without what it used after `fromMs`; `later` are its segments that reach beyond that. */
export function keptCost(meter: Meter, later: readonly SegmentRow[], fromMs: number): number {
  const given = later.reduce((cost, segment) => {
    if (segment.is_billable === 0 || segment.to_ms === null) return cost;
    return addTime(cost, rateOf(meter), segment.to_ms - Math.max(segment.from_ms, fromMs));
  }, NO_COST);
  const closed = partsOf({ uusd: meter.closed_uusd, rest: meter.closed_rest });
  return costOfParts(closed - partsOf(given)).uusd;
}

/** What is to be charged for a meter up to `untilMs`; null for nothing. */
export function dueCharge(meter: Meter, untilMs: number): number | null {
  const before = { chargedUusd: meter.charged_uusd, providerUusd: meter.provider_uusd };
  const { chargeUusd } = chargeBetween(before, costUntil(meter, untilMs).uusd);
  return chargeUusd > 0 ? chargeUusd : null;
}

/** What of a charge was paid out of the pod's hold before, and what of that was granted credit. */
export type PaidByHold = { uusd: number; granted: number };
export const NOTHING_HELD: PaidByHold = { uusd: 0, granted: 0 };

export type Planned = {
  legs: Leg[];
  /** All but the number of the group. */
  settled: Omit<Settled, 'group_id'>;
  /** What is left. */
  wallet: Wallet;
};

/** The settlement of one meter up to `untilMs`: the renter pays what is there, the platform absorbs the rest. */
export function planSettlement(
  meter: Meter,
  untilMs: number,
  wallet: Wallet,
  held: PaidByHold = NOTHING_HELD,
): Planned {
  const before = { chargedUusd: meter.charged_uusd, providerUusd: meter.provider_uusd };
  const charge = chargeBetween(before, costUntil(meter, untilMs).uusd);
  const open = charge.chargeUusd - held.uusd;
  const paid = Math.min(open, wallet.available);
  const absorbed = open - paid;
  const spent = spendLegs(wallet, paid, USAGE);
  const granted = spent
    .filter(({ debit }) => debit.startsWith('granted:'))
    .reduce((sum, { amountUusd }) => sum + amountUusd, 0);
  const legs: Leg[] = [
    ...spent,
    { debit: 'platform:absorbed', credit: USAGE, amountUusd: absorbed },
    { debit: USAGE, credit: providerAccount(meter.provider_id), amountUusd: charge.providerUusd },
    { debit: USAGE, credit: 'platform:fee', amountUusd: charge.feeUusd },
  ];
  return {
    legs: legs.filter(({ amountUusd }) => amountUusd > 0),
    settled: {
      pod_id: meter.pod_id,
      tick_seq: meter.tick_seq + 1,
      from_ms: Math.max(meter.settled_to_ms, meter.since_ms),
      to_ms: untilMs,
      total_uusd: meter.charged_uusd + charge.chargeUusd,
      provider_total_uusd: meter.provider_uusd + charge.providerUusd,
      granted_uusd: meter.granted_uusd + granted + held.granted,
      absorbed_uusd: meter.absorbed_uusd + absorbed,
      // That in which the time it meters ends.
      day_ms: startOfDay(untilMs),
      provider_id: meter.provider_id,
      executor_id: meter.executor_id,
      gpu_count: meter.gpu_count,
      charge_uusd: charge.chargeUusd,
      net_uusd: charge.providerUusd,
    },
    wallet: {
      ...wallet,
      paid: wallet.paid - (paid - granted),
      granted: wallet.granted - granted,
      available: wallet.available - paid,
    },
  };
}
