/** When an account is told that its balance is low (marketplace reference 1.6). Pure. */

/**
 * What an account has and how fast it goes: micro-dollars, and micro-dollars an hour. `runsOutAtMs` is what `GET /users/me`
 * shows: what is held for running pods is theirs to use; null: never.
 */
export type Funds = { available: number; burnPerHour: number; runsOutAtMs: number | null };
export type Thresholds = { thresholdUusd: number; runwayMinutes: number };
/** Of what it was told and has not recovered from. */
export type Told = { ofAmount: boolean; ofRunway: boolean };

export const DEFAULT_THRESHOLDS: Thresholds = { thresholdUusd: 5_000_000, runwayMinutes: 120 };
export const TOLD_NOTHING: Told = { ofAmount: false, ofRunway: false };

const MINUTE_MS = 60_000;
/** Below the threshold and a tenth more nothing is told again: a balance that hovers there tells once. */
const RECOVERED_TENTHS = 11;

/** Milliseconds until pods stop for want of money; Infinity: they never do. */
export function runwayMs({ runsOutAtMs }: Funds, nowMs: number): number {
  return runsOutAtMs === null ? Number.POSITIVE_INFINITY : Math.max(0, runsOutAtMs - nowMs);
}

/** Both thresholds are crossed at their exact value, each by itself; `tell`: whether one was crossed just now. */
export function judgeFunds(
  funds: Funds,
  { thresholdUusd, runwayMinutes }: Thresholds,
  told: Told,
  nowMs: number,
): { tell: boolean; told: Told } {
  const amount = judgeOne(funds.available, thresholdUusd, told.ofAmount);
  const runway = judgeOne(runwayMs(funds, nowMs), runwayMinutes * MINUTE_MS, told.ofRunway);
  return {
    tell: (amount && !told.ofAmount) || (runway && !told.ofRunway),
    told: { ofAmount: amount, ofRunway: runway },
  };
}

/** Whether a threshold counts as crossed now. */
function judgeOne(value: number, threshold: number, wasCrossed: boolean): boolean {
  if (value <= threshold) return true;
  return wasCrossed && value * 10 < threshold * RECOVERED_TENTHS;
}

/** `3 h 12 min left`, `12 min left`, for people; null while nothing is spent. */
export function runwayText(funds: Funds, nowMs: number): string | null {
  const leftMs = runwayMs(funds, nowMs);
  if (!Number.isFinite(leftMs)) return null;
  const minutes = Math.floor(leftMs / MINUTE_MS);
  const [days, hours] = [Math.floor(minutes / 1_440), Math.floor((minutes % 1_440) / 60)];
  const rest = minutes % 60;
  if (days > 0) return `${days} d ${hours} h left`;
  return hours > 0 ? `${hours} h ${rest} min left` : `${rest} min left`;
}
