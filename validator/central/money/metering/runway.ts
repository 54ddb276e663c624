/**
 * Computes the instant at which money runs out, to the millisecond: until that instant, pods cost no more than the
 * account's funds. A settlement moves money from available to charged and does not change the instant. Pure.
 */
import { type Cost, partsOf, type Rate, rateOf, ratePerHour } from './cost.ts';
import type { Meter } from './usage.store.ts';

/** The last instant that a timestamp of the API can express: the end of the year 9999. */
const END_OF_TIME_MS = 253_402_300_799_999n;

/**
 * Money and spending of an account: micro-dollars, and micro-dollars per hour. `runsOutAtMs` takes into account money
 * that is held for running pods, as in `GET /users/me`; null if never.
 */
export type Funds = { available: number; burnPerHour: number; runsOutAtMs: number | null };

/** A billable pod. */
export type Burning = {
  /** Cost of its closed segments. */
  closed: Cost;
  rate: Rate;
  /** Time at which the pod's open segment began. */
  sinceMs: number;
  chargedUusd: number;
  /** Time at which the pod's spend limit or the account's funds were last reduced. Earlier use is never cut off. */
  changedMs: number;
};

/** Converts a billable meter. */
export function burningOf(meter: Meter): Burning {
  return {
    closed: { uusd: meter.closed_uusd, rest: meter.closed_rest },
    rate: rateOf(meter),
    sinceMs: meter.since_ms,
    chargedUusd: meter.charged_uusd,
    changedMs: meter.changed_ms,
  };
}

/** Total cost of billable meters, in micro-dollars per hour. */
export function burnPerHour(meters: readonly Meter[]): number {
  return Number(meters.reduce((sum, meter) => sum + ratePerHour(rateOf(meter)), 0n));
}

/**
 * Returns the time at which pods have used up `fundsUusd` in addition to their earlier charges; null if never. The
 * result is not before the last of the pods became billable, nor before the funds were last reduced.
 */
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

/**
 * Returns the time at which this pod alone reaches `limitUusd`; null if never. The result is not before the pod became
 * billable, nor before the limit was last reduced.
 */
export function spendsOutAt(pod: Burning, limitUusd: number): number | null {
  const perHour = ratePerHour(pod.rate);
  if (perHour === 0n) return null;
  const left = partsOf({ uusd: limitUusd, rest: 0 }) - partsOf(pod.closed);
  return notBefore(instantAfter(pod.sinceMs, left, perHour), pod.changedMs);
}

/** Milliseconds for which `uusd` pays for these pods; null for an unlimited time. */
export function durationOf(uusd: number, burning: readonly Burning[]): number | null {
  const perHour = burning.reduce((sum, { rate }) => sum + ratePerHour(rate), 0n);
  return perHour === 0n ? null : instantAfter(0, partsOf({ uusd, rest: 0 }), perHour);
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
