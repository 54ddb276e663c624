/** Computes the times of warnings before an event, for example a removal or the end of the balance. Pure. */

/** Times of the warnings in minutes before the event, longest first. */
const WARNING_MINUTES = [60, 15, 5] as const;
export type WarningMinutes = (typeof WARNING_MINUTES)[number];

const MINUTE_MS = 60_000;

/**
 * Returns the time of the first warning. The time may be in the past. Then only the latest missed warning is sent, and
 * it is sent immediately.
 */
export function firstWarningAt(atMs: number): number {
  const [first] = WARNING_MINUTES;
  return atMs - first * MINUTE_MS;
}

/**
 * Returns the latest warning that is due, in minutes before the event; null before the first warning and after the
 * event.
 */
export function dueWarning(atMs: number, nowMs: number): WarningMinutes | null {
  if (nowMs >= atMs) return null;
  return WARNING_MINUTES.findLast((minutes) => atMs - minutes * MINUTE_MS <= nowMs) ?? null;
}

/** Returns the time of the next warning after `nowMs`; null if there is no further warning. */
export function nextWarningAt(atMs: number, nowMs: number): number | null {
  const times = WARNING_MINUTES.map((minutes) => atMs - minutes * MINUTE_MS);
  return times.find((warnAtMs) => warnAtMs > nowMs) ?? null;
}

/** Returns the minutes until the event, rounded up. */
export function minutesLeft(atMs: number, nowMs: number): number {
  return Math.ceil((atMs - nowMs) / MINUTE_MS);
}
