/** When what goes out to the world is tried again: mails, webhooks (marketplace reference 1.14), payments. Pure. */

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** Pauses after the first, second, … attempt; after the last one it has failed. */
export const RETRY_PAUSES_MS: readonly number[] = [
  5 * SECOND_MS,
  30 * SECOND_MS,
  2 * MINUTE_MS,
  10 * MINUTE_MS,
  HOUR_MS,
  6 * HOUR_MS,
  24 * HOUR_MS,
];

/** Of questions to who moves money, which are asked again for as long as somebody waits for the answer. */
const ASK_PAUSES_MS: readonly number[] = [10 * SECOND_MS, MINUTE_MS, 10 * MINUTE_MS];

/** When the processor is asked again, after so many attempts. */
export function nextAskAt(attempts: number, nowMs: number): number {
  return nowMs + (ASK_PAUSES_MS[attempts - 1] ?? HOUR_MS);
}
