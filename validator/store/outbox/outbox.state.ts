/** When something that could not be told is told again, and when it is given up. Pure (validator reference 10). */

const FIRST_PAUSE_MS = 1_000;
export const LONGEST_PAUSE_MS = 300_000;
/** About a day of the longest pause. */
export const MAX_ATTEMPTS = 300;
/** The other side could not say yes or no: as if it had not been asked. */
const PASSING_STATUSES: readonly number[] = [408, 409, 425, 429];

/** What came of one attempt. */
export type Outcome =
  | { state: 'taken' }
  /** Asking again is of no use: people have to look at it. */
  | { state: 'refused'; reason: string }
  | { state: 'unavailable'; reason: string };

/** Milliseconds from attempt number `attempts` (from 1) to the next; `jitter` is in [0, 1). */
export function pauseAfter(attempts: number, jitter: number): number {
  const whole = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(attempts - 1, 30), LONGEST_PAUSE_MS);
  return Math.round(whole / 2 + (whole / 2) * jitter);
}

/** How a status other than success is taken. */
export function outcomeOf(status: number, reason: string): Outcome {
  const isRefusal = status >= 400 && status < 500 && !PASSING_STATUSES.includes(status);
  return isRefusal ? { state: 'refused', reason } : { state: 'unavailable', reason };
}
