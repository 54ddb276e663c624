/** When a renter is warned of what comes at its time: a removal, the end of the money (marketplace reference 1.10). Pure. */

/** Minutes before it, longest first. */
const WARNING_MINUTES = [60, 15, 5] as const;
export type WarningMinutes = (typeof WARNING_MINUTES)[number];

const MINUTE_MS = 60_000;

/** When the first one is due, which may have passed: then the latest is given at once. */
export function firstWarningAt(atMs: number): number {
  const [first] = WARNING_MINUTES;
  return atMs - first * MINUTE_MS;
}

/** The latest warning whose time has come, those before it being out of date; null before the first and once it is due itself. */
export function dueWarning(atMs: number, nowMs: number): WarningMinutes | null {
  if (nowMs >= atMs) return null;
  return WARNING_MINUTES.findLast((minutes) => atMs - minutes * MINUTE_MS <= nowMs) ?? null;
}

/** When the first warning after `nowMs` is due; null when there is none any more. */
export function nextWarningAt(atMs: number, nowMs: number): number | null {
  const times = WARNING_MINUTES.map((minutes) => atMs - minutes * MINUTE_MS);
  return times.find((warnAtMs) => warnAtMs > nowMs) ?? null;
}

/** Whole minutes until then, a begun one counted. */
export function minutesLeft(atMs: number, nowMs: number): number {
  return Math.ceil((atMs - nowMs) / MINUTE_MS);
}
