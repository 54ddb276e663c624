/**
 * Cost of metered time, exact to 1 / 3,600,000 of a micro-dollar. Numerators are summed before they are divided, and
 * every charge is the total so far minus the earlier charges. So rounding does not accumulate, even if a pod is settled
 * often. Pure.
 */
import { costMicroCeil } from '#shared/api/money.ts';
import { providerShare } from '../ledger/shares.ts';
import type { Meter, SegmentRow } from './usage.store.ts';

/** Unit of rates, which are per GPU and hour. */
const HOUR_MS = 3_600_000;
const HOUR = BigInt(HOUR_MS);

/** Micro-dollars: `uusd` whole micro-dollars and `rest` / 3,600,000 of a micro-dollar. */
export type Cost = { uusd: number; rest: number };
export const NO_COST: Cost = { uusd: 0, rest: 0 };

/** Price of billable time: micro-dollars per GPU and hour, times the number of GPUs. */
export type Rate = { priceUusdPerGpuHour: number; gpus: number };

/** Micro-dollars per hour for all GPUs. */
export function ratePerHour({ priceUusdPerGpuHour, gpus }: Rate): bigint {
  return BigInt(priceUusdPerGpuHour) * BigInt(gpus);
}

/** Rate of a meter while it is billable. */
export function rateOf(meter: Pick<Meter, 'price_uusd_per_gpu_hour' | 'gpu_count'>): Rate {
  return { priceUusdPerGpuHour: meter.price_uusd_per_gpu_hour, gpus: meter.gpu_count };
}

/** Amount in 3,600,000ths of a micro-dollar. */
export function partsOf({ uusd, rest }: Cost): bigint {
  return BigInt(uusd) * HOUR + BigInt(rest);
}

/** Throws RangeError beyond the safe integer range, which no pod can reach in practice. */
export function costOfParts(parts: bigint): Cost {
  const uusd = Number(parts / HOUR);
  if (!Number.isSafeInteger(uusd)) {
    throw new RangeError('the cost of a pod exceeds the safe integer range');
  }
  return { uusd, rest: Number(parts % HOUR) };
}

/** Adds the cost of `ms` at this rate. A negative `ms`, from a clock that was set back, adds nothing. */
export function addTime(cost: Cost, rate: Rate, ms: number): Cost {
  if (ms <= 0) return cost;
  return costOfParts(partsOf(cost) + ratePerHour(rate) * BigInt(ms));
}

/** Cost of all time metered so far, including the open segment up to `untilMs`. */
export function costUntil(meter: Meter, untilMs: number): Cost {
  const closed = { uusd: meter.closed_uusd, rest: meter.closed_rest };
  return meter.is_billable === 1
    ? addTime(closed, rateOf(meter), untilMs - meter.since_ms)
    : closed;
}

/**
 * Time for which a pod that has run is charged at least. Otherwise a series of rentals that end at once would occupy
 * GPUs for almost nothing.
 */
export const MINIMUM_CHARGE_MS = 60_000;

/** Longest time that is refunded for a provider's fault. */
export const LONGEST_FAULT_MS = 86_400_000;

/** Smallest total of a pod that has run, and smallest `max_spend_usd`: one minute, at most the hold of a rental. */
export function minimumCharge(rate: Rate): number {
  return addTime(NO_COST, rate, MINIMUM_CHARGE_MS).uusd;
}

/** Total to charge for a pod whose metered time has this cost; 0 for a pod that has not run. */
export function totalOf(cost: Cost, rate: Rate): number {
  return partsOf(cost) === 0n ? 0 : Math.max(cost.uusd, minimumCharge(rate));
}

/**
 * Cost of a settled pod without the time after `fromMs`, in micro-dollars. `later` must contain all segments of the pod
 * that end after `fromMs`.
 */
export function costBefore(meter: Meter, later: readonly SegmentRow[], fromMs: number): number {
  const after = later.reduce((cost, segment) => {
    if (segment.is_billable === 0 || segment.to_ms === null) return cost;
    return addTime(cost, rateOf(meter), segment.to_ms - Math.max(segment.from_ms, fromMs));
  }, NO_COST);
  const closed = partsOf({ uusd: meter.closed_uusd, rest: meter.closed_rest });
  return costOfParts(closed - partsOf(after)).uusd;
}

/** One charge and its division among the parties. */
export type Charge = { chargeUusd: number; providerUusd: number; feeUusd: number };

/** Charge that raises the amounts charged and credited so far to those for `totalUusd`. Never negative. */
export function chargeBetween(
  before: { chargedUusd: number; providerUusd: number },
  totalUusd: number,
): Charge {
  const chargeUusd = Math.max(0, totalUusd - before.chargedUusd);
  const providerUusd = providerShare(before.chargedUusd + chargeUusd) - before.providerUusd;
  return { chargeUusd, providerUusd, feeUusd: chargeUusd - providerUusd };
}

/** Metered time, which costs nothing if it is not billable. Open if `toMs` is null. */
export type Segment = {
  fromMs: number;
  toMs: number | null;
  isBillable: boolean;
  rate: Rate;
};

/** Recomputes the cost of segments up to `untilMs` from scratch, for comparison with the running totals. */
export function costOfSegments(segments: readonly Segment[], untilMs: number): Cost {
  return segments
    .filter(({ isBillable }) => isBillable)
    .reduce((cost, { fromMs, toMs, rate }) => {
      const endMs = toMs === null ? untilMs : Math.min(toMs, untilMs);
      return addTime(cost, rate, endMs - fromMs);
    }, NO_COST);
}

/** Runtime that must be funded when a pod starts, and that other spending must reserve for running pods: 15 minutes. */
export const MINIMUM_RUNTIME_MS = 900_000;

/** Micro-dollars that must be available to rent `gpus` at this price: 15 minutes, rounded up. */
export function rentalMinimum(priceUusdPerGpuHour: number, gpus: number): number {
  return costMicroCeil(priceUusdPerGpuHour, gpus, MINIMUM_RUNTIME_MS);
}
