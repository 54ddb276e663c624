/** When a renter is warned of a scheduled removal (marketplace reference 1.10). Pure. */

/** Minutes before the removal, longest first. */
const WARNING_MINUTES = [60, 15, 5] as const;
export type WarningMinutes = (typeof WARNING_MINUTES)[number];

const MINUTE_MS = 60_000;

/** When the first one is due, which may have passed: then the latest is given at once. */
export function firstWarningAt(removalAt: number): number {
  const [first] = WARNING_MINUTES;
  return removalAt - first * MINUTE_MS;
}

/** The latest warning whose time has come, those before it being out of date; null before the first and once the removal itself is due. */
export function dueWarning(removalAt: number, nowMs: number): WarningMinutes | null {
  if (nowMs >= removalAt) return null;
  return WARNING_MINUTES.findLast((minutes) => removalAt - minutes * MINUTE_MS <= nowMs) ?? null;
}

/** When the first warning after `nowMs` is due; null when there is none any more. */
export function nextWarningAt(removalAt: number, nowMs: number): number | null {
  const times = WARNING_MINUTES.map((minutes) => removalAt - minutes * MINUTE_MS);
  return times.find((atMs) => atMs > nowMs) ?? null;
}

/** Whole minutes until the removal, a begun one counted. */
export function minutesLeft(removalAt: number, nowMs: number): number {
  return Math.ceil((removalAt - nowMs) / MINUTE_MS);
}
