/** When a renter is warned that the money runs out (marketplace reference 2.3.6). Pure. */

const MINUTE_MS = 60_000;
/** Minutes before the cut-off, longest first. */
const WARNING_MINUTES = [60, 15, 5] as const;

/** When the first warning after `nowMs` is due; null when there is none any more. */
export function nextBalanceWarningAt(runsOutAtMs: number, nowMs: number): number | null {
  const times = WARNING_MINUTES.map((minutes) => runsOutAtMs - minutes * MINUTE_MS);
  return times.find((atMs) => atMs > nowMs) ?? null;
}

/** Whole minutes that are left, a begun one counted. */
export function minutesUntil(runsOutAtMs: number, nowMs: number): number {
  return Math.max(0, Math.ceil((runsOutAtMs - nowMs) / MINUTE_MS));
}
