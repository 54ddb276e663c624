/** Times of the warnings before an event such as a removal or the end of the balance. Pure. */

/** Minutes before the event, longest first. */
const WARNING_MINUTES = [60, 15, 5] as const;
export type WarningMinutes = (typeof WARNING_MINUTES)[number];

const MINUTE_MS = 60_000;

/** Returns the time of the first warning. It may be in the past; then the latest missed warning is sent at once. */
export function firstWarningAt(atMs: number): number {
  const [first] = WARNING_MINUTES;
  return atMs - first * MINUTE_MS;
}

/**
 * Returns the latest warning that is due, in minutes before the event; null before the first one and after the event.
 */
export function dueWarning(atMs: number, nowMs: number): WarningMinutes | null {
  if (nowMs >= atMs) return null;
  return WARNING_MINUTES.findLast((minutes) => atMs - minutes * MINUTE_MS <= nowMs) ?? null;
}

/** Returns the time of the next warning after `nowMs`; null if there is none. */
export function nextWarningAt(atMs: number, nowMs: number): number | null {
  const times = WARNING_MINUTES.map((minutes) => atMs - minutes * MINUTE_MS);
  return times.find((warnAtMs) => warnAtMs > nowMs) ?? null;
}

/** Returns the minutes until the event, rounded up. */
export function minutesLeft(atMs: number, nowMs: number): number {
  return Math.ceil((atMs - nowMs) / MINUTE_MS);
}
