/**
 * When money runs out, computed to the millisecond (marketplace reference 2.3.6): at that instant no pod has cost more
 * than there was. A tick moves money from what is there to what is charged and leaves the instant alone. Pure.
 */
import { type Cost, partsOf, type Rate, ratePerHour } from './meter.ts';

/** The last instant that a time of the wire can name. */
const END_OF_TIME_MS = 253_402_300_799_999n;

/** A pod whose time costs money now. */
export type Burning = {
  /** Of its closed segments. */
  closed: Cost;
  rate: Rate;
  /** Since when it is billable. */
  sinceMs: number;
  chargedUusd: number;
  /** When a limit of it or the funds were last lowered: neither ends what was used before. */
  changedMs: number;
};

/** When `fundsUusd` and what these pods have been charged is used up; null: never. At the earliest when the last of them began, or the funds were lowered. */
export function runsOutAt(fundsUusd: number, burning: readonly Burning[]): number | null {
  const perHour = burning.reduce((sum, { rate }) => sum + ratePerHour(rate), 0n);
  if (perHour === 0n) return null;
  const sinceMs = Math.max(...burning.map((pod) => pod.sinceMs));
  const charged = burning.reduce((sum, pod) => sum + BigInt(pod.chargedUusd), 0n);
  const spent = burning.reduce((sum, pod) => sum + partsUntil(pod, sinceMs), 0n);
  const budget = partsOf({ uusd: fundsUusd, rest: 0 }) + charged * partsOf({ uusd: 1, rest: 0 });
  const atMs = instantAfter(sinceMs, budget - spent, perHour);
  return notBefore(atMs, Math.max(...burning.map((pod) => pod.changedMs)));
}

/** When the pod alone has cost `capUusd`; null: never. At the earliest when it began to be billable, or the limit was lowered. */
export function spendsOutAt(pod: Burning, capUusd: number): number | null {
  const perHour = ratePerHour(pod.rate);
  if (perHour === 0n) return null;
  const left = partsOf({ uusd: capUusd, rest: 0 }) - partsOf(pod.closed);
  return notBefore(instantAfter(pod.sinceMs, left, perHour), pod.changedMs);
}

function notBefore(atMs: number | null, earliestMs: number): number | null {
  return atMs === null ? null : Math.max(atMs, earliestMs);
}

function partsUntil({ closed, rate, sinceMs }: Burning, untilMs: number): bigint {
  return partsOf(closed) + ratePerHour(rate) * BigInt(untilMs - sinceMs);
}

function instantAfter(sinceMs: number, parts: bigint, perHour: bigint): number | null {
  if (parts <= 0n) return sinceMs;
  const atMs = BigInt(sinceMs) + parts / perHour;
  return atMs > END_OF_TIME_MS ? null : Number(atMs);
}
