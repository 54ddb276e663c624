/** Times at which renters request the state of a pod that starts. Pure. */

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
/** First and longest pause between two requests: a person requests a pod often at first. */
const FIRST_MS = 15 * SECOND_MS;
const LONGEST_MS = 5 * MINUTE_MS;

/** Pauses between the requests in milliseconds, for ever. */
export function* lookPauses(): Generator<number, never> {
  for (let pauseMs = FIRST_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_MS)) yield pauseMs;
}

/** Returns the times of the requests in milliseconds after the rental, until the first that is not before `untilMs`. */
export function looksUntil(untilMs: number): number[] {
  const times: number[] = [];
  let atMs = 0;
  for (const pauseMs of lookPauses()) {
    atMs += pauseMs;
    times.push(atMs);
    if (atMs >= untilMs) return times;
  }
  return times;
}
