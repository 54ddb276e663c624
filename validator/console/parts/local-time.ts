/** Times that people enter in their local time. Pure. */
import { dateOf, parseLocalTime } from '../browser/clock.ts';

/** Returns the time of a `datetime-local` field for the API; null for an empty field. */
export function timeOfField(text: string): string | null {
  const epochMs = parseLocalTime(text);
  return epochMs === null ? null : dateOf(epochMs).toISOString();
}
