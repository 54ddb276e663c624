/** Difference between the clock of the server and that of the browser, from the header `Date`. Pure. */

/** The header has whole seconds, and the answer needs some time; smaller differences are not certain. */
const LEAST_OFFSET_MS = 5_000;

/**
 * Returns what the server's clock is ahead of the browser's, in milliseconds; 0 if it is not certain. `serverMs` is null
 * without a header.
 */
export function offsetOf(serverMs: number | null, browserMs: number): number {
  if (serverMs === null) return 0;
  const offsetMs = serverMs - browserMs;
  return Math.abs(offsetMs) >= LEAST_OFFSET_MS ? offsetMs : 0;
}
