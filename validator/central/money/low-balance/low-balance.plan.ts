/** Decides when an account is notified of a low balance. Pure. */
import type { Funds } from '../metering/runway.ts';

export type Thresholds = { thresholdUusd: number; runwayMinutes: number };
/** Thresholds of which an account has been notified since its balance last recovered. */
export type Notified = { ofAmount: boolean; ofRunway: boolean };

export const DEFAULT_THRESHOLDS: Thresholds = { thresholdUusd: 5_000_000, runwayMinutes: 120 };
export const NEVER_NOTIFIED: Notified = { ofAmount: false, ofRunway: false };

const MINUTE_MS = 60_000;
/**
 * Tenths of the threshold at which a balance counts as recovered, so that a balance that varies around the threshold
 * causes one notification.
 */
const RECOVERED_TENTHS = 11;

/** Milliseconds until pods stop because the money runs out; Infinity if they never stop. */
export function runwayMs({ runsOutAtMs }: Funds, nowMs: number): number {
  return runsOutAtMs === null ? Number.POSITIVE_INFINITY : Math.max(0, runsOutAtMs - nowMs);
}

/**
 * Checks both thresholds. A value equal to its threshold has crossed it. `notify` is true if a threshold was crossed of
 * which the account was not yet notified.
 */
export function checkThresholds(
  funds: Funds,
  { thresholdUusd, runwayMinutes }: Thresholds,
  before: Notified,
  nowMs: number,
): { notify: boolean; notified: Notified } {
  const amount = isCrossed(funds.available, thresholdUusd, before.ofAmount);
  const runway = isCrossed(runwayMs(funds, nowMs), runwayMinutes * MINUTE_MS, before.ofRunway);
  return {
    notify: (amount && !before.ofAmount) || (runway && !before.ofRunway),
    notified: { ofAmount: amount, ofRunway: runway },
  };
}

function isCrossed(value: number, threshold: number, wasCrossed: boolean): boolean {
  if (value <= threshold) return true;
  return wasCrossed && value * 10 < threshold * RECOVERED_TENTHS;
}

/** Formats the runway as `3 h 12 min left` or `12 min left`. Returns null while nothing is spent. */
export function runwayText(funds: Funds, nowMs: number): string | null {
  const leftMs = runwayMs(funds, nowMs);
  if (!Number.isFinite(leftMs)) return null;
  const minutes = Math.floor(leftMs / MINUTE_MS);
  const [days, hours] = [Math.floor(minutes / 1_440), Math.floor((minutes % 1_440) / 60)];
  const rest = minutes % 60;
  if (days > 0) return `${days} d ${hours} h left`;
  return hours > 0 ? `${hours} h ${rest} min left` : `${rest} min left`;
}
