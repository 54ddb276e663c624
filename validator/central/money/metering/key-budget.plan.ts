/** Computes, to the millisecond, when the running pods of an API key use up its budgets. Pure. */
import { startOfDay } from '#shared/runtime/clock.ts';
import { type Cost, costOfParts, partsOf, rateOf, ratePerHour } from './cost.ts';
import { type Burning, durationOf, runsOutAt } from './runway.ts';
import type { Meter, SegmentRow } from './usage.store.ts';

export const DAY_MS = 86_400_000;

/** Limits in micro-dollars; null for no limit. */
export type Limits = { dailyUusd: number | null; totalUusd: number | null };

/**
 * Micro-dollars that a key has spent. `todayUusd` is below zero while use of the day before is not charged yet; then 0
 * is shown.
 */
export type Spent = { todayUusd: number; totalUusd: number };
export const NOTHING_SPENT: Spent = { todayUusd: 0, totalUusd: 0 };

/**
 * Returns the time at which the first budget is used up if the same pods continue to run; null if never. A day begins
 * at 00:00 UTC.
 */
export function budgetReachedAt(
  { dailyUusd, totalUusd }: Limits,
  spent: Spent,
  burning: readonly Burning[],
  nowMs: number,
): number | null {
  const reached = [
    totalUusd === null ? null : runsOutAt(totalUusd - spent.totalUusd, burning),
    dailyUusd === null ? null : dayReachedAt(dailyUusd, spent.todayUusd, burning, nowMs),
  ].filter((ms) => ms !== null);
  return reached.length === 0 ? null : Math.min(...reached);
}

/**
 * Time at which the daily budget is used up; null if never. Every later day costs the same, so a budget that covers
 * tomorrow covers all later days.
 */
function dayReachedAt(
  dailyUusd: number,
  todayUusd: number,
  burning: readonly Burning[],
  nowMs: number,
): number | null {
  const midnightMs = startOfDay(nowMs) + DAY_MS;
  const todayMs = runsOutAt(dailyUusd - todayUusd, burning);
  if (todayMs !== null && todayMs < midnightMs) return todayMs;
  const lastsMs = durationOf(dailyUusd, burning);
  return lastsMs !== null && lastsMs < DAY_MS ? midnightMs + lastsMs : null;
}

/**
 * Micro-dollars charged for a meter's time from `dayMs` on. Below zero while earlier time is not charged yet. `later`
 * contains the meter's segments that end after `dayMs` or are open.
 */
export function chargedSince(meter: Meter, later: readonly SegmentRow[], dayMs: number): number {
  return meter.charged_uusd - costAt(meter, later, dayMs).uusd;
}

/** Cost of the meter's time before `atMs`. */
function costAt(meter: Meter, later: readonly SegmentRow[], atMs: number): Cost {
  const perHour = ratePerHour(rateOf(meter));
  let parts = partsOf({ uusd: meter.closed_uusd, rest: meter.closed_rest });
  for (const { is_billable, from_ms, to_ms } of later) {
    if (is_billable === 0) continue;
    if (to_ms !== null) parts -= perHour * BigInt(to_ms - Math.max(from_ms, atMs));
    else parts += perHour * BigInt(Math.max(0, atMs - from_ms));
  }
  return costOfParts(parts);
}
