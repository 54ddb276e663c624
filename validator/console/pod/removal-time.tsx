import { dateOf } from '../browser/clock.ts';
import { nowMs } from '../browser/server-time.ts';

const HOUR_MS = 3_600_000;
/** Time that the request may take, so that one hour ahead is still an hour when it arrives. */
const MARGIN_MS = 60_000;

/** Returns the time in `hours` from now for the API. */
export function removalTime(hours: number): string {
  return dateOf(nowMs() + hours * HOUR_MS + MARGIN_MS).toISOString();
}
