/** Plans the charge of one meter: the amount that is due, and the days (UTC) to which it belongs. Pure. */
import { startOfDay } from '#shared/runtime/clock.ts';
import { type Charge, chargeBetween, costUntil, rateOf, totalOf } from './cost.ts';
import type { Meter } from './usage.store.ts';

const DAY_MS = 86_400_000;

/** Micro-dollars to charge for a meter up to `untilMs`; null if nothing is due. */
export function dueCharge(meter: Meter, untilMs: number): number | null {
  const { chargeUusd } = chargeOf(meter, untilMs);
  return chargeUusd > 0 ? chargeUusd : null;
}

/** The first charge is at least the minimum charge, which is then set off against further use. */
export function chargeOf(meter: Meter, untilMs: number): Charge {
  const before = { chargedUusd: meter.charged_uusd, providerUusd: meter.provider_uusd };
  return chargeBetween(before, totalOf(costUntil(meter, untilMs), rateOf(meter)));
}

/** Paid credit in a pod's charges, without granted credit and the part that the platform absorbed. */
export const paidIn = (
  meter: Pick<Meter, 'charged_uusd' | 'granted_uusd' | 'absorbed_uusd'>,
): number => meter.charged_uusd - meter.granted_uusd - meter.absorbed_uusd;

/** Start of the time that the next settlement charges. */
function chargedFrom(meter: Meter): number {
  return Math.max(meter.settled_to_ms, meter.since_ms);
}

/** Part of a charge that belongs to one day, and its part of the provider's earnings. */
export type DayShare = {
  day_ms: number;
  from_ms: number;
  to_ms: number;
  charge_uusd: number;
  net_uusd: number;
};

/**
 * Divides the charge up to `untilMs` among the days of the charged time, so that the interval of settlements does not
 * change the amounts of a day. Each share is a total minus the earlier shares.
 */
export function dayShares(meter: Meter, untilMs: number): DayShare[] {
  const shares: DayShare[] = [];
  let before = { chargeUusd: 0, providerUusd: 0 };
  for (let fromMs = chargedFrom(meter); ; ) {
    const dayMs = startOfDay(fromMs);
    const toMs = Math.min(dayMs + DAY_MS, untilMs);
    const total = chargeOf(meter, toMs);
    shares.push({
      day_ms: dayMs,
      from_ms: fromMs,
      to_ms: toMs,
      charge_uusd: total.chargeUusd - before.chargeUusd,
      net_uusd: total.providerUusd - before.providerUusd,
    });
    if (toMs >= untilMs) return shares;
    before = total;
    fromMs = toMs;
  }
}
