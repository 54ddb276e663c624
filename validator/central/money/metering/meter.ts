/**
 * What metered time costs (marketplace reference 2.3). Numerators are summed before they are divided, and every charge
 * is the whole so far less what was charged before: nothing drifts, however often one looks. Pure.
 */
import { providerShare } from '../ledger/shares.ts';

/** A rate is per GPU and hour. */
const HOUR_MS = 3_600_000;
const HOUR = BigInt(HOUR_MS);

/** Micro-dollars, exact: `uusd` whole ones and `rest` / 3 600 000 of one. */
export type Cost = { uusd: number; rest: number };
export const NO_COST: Cost = { uusd: 0, rest: 0 };

/** What a pod pays while it is billable: micro-dollars per GPU and hour, times GPUs. */
export type Rate = { priceUusdPerGpuHour: number; gpus: number };

/** Micro-dollars per hour of all its GPUs. */
export function ratePerHour({ priceUusdPerGpuHour, gpus }: Rate): bigint {
  return BigInt(priceUusdPerGpuHour) * BigInt(gpus);
}

/** In 3 600 000ths of a micro-dollar. */
export function partsOf({ uusd, rest }: Cost): bigint {
  return BigInt(uusd) * HOUR + BigInt(rest);
}

/** Throws RangeError beyond the safe range, which no pod lives to see. */
export function costOfParts(parts: bigint): Cost {
  const uusd = Number(parts / HOUR);
  if (!Number.isSafeInteger(uusd)) throw new RangeError('the cost of a pod passes the safe range');
  return { uusd, rest: Number(parts % HOUR) };
}

/** `cost` and that of `ms` more at this rate; time that went backwards costs nothing. */
export function addTime(cost: Cost, rate: Rate, ms: number): Cost {
  if (ms <= 0) return cost;
  return costOfParts(partsOf(cost) + ratePerHour(rate) * BigInt(ms));
}

/** What of a renter's money the next posting moves. */
export type Charge = { chargeUusd: number; providerUusd: number; feeUusd: number };

/** From what was charged and credited before to a total that is not lower. */
export function chargeBetween(
  before: { chargedUusd: number; providerUusd: number },
  totalUusd: number,
): Charge {
  const chargeUusd = Math.max(0, totalUusd - before.chargedUusd);
  const providerUusd = providerShare(before.chargedUusd + chargeUusd) - before.providerUusd;
  return { chargeUusd, providerUusd, feeUusd: chargeUusd - providerUusd };
}

/** Metered time that cost `rate`, or nothing while `isBillable` is false; open without `toMs`. */
export type Segment = {
  fromMs: number;
  toMs: number | null;
  isBillable: boolean;
  rate: Rate;
};

/** What segments cost up to `untilMs`, from scratch: what the running figures have to agree with. */
export function costOfSegments(segments: readonly Segment[], untilMs: number): Cost {
  return segments
    .filter(({ isBillable }) => isBillable)
    .reduce((cost, { fromMs, toMs, rate }) => {
      const endMs = toMs === null ? untilMs : Math.min(toMs, untilMs);
      return addTime(cost, rate, endMs - fromMs);
    }, NO_COST);
}
