/** Times of log lines. */
import { dateOf, localOffsetMs, parseApiTime } from '../browser/clock.ts';

export const TIME_MODES = ['local', 'utc', 'off'] as const;
export type TimeMode = (typeof TIME_MODES)[number];

/** Characters of a time in a row. */
export const TIME_CHARS = 12;

/** Returns for example `12:00:00.250`; the text itself if it is not a time. */
export function clockTime(at: string, mode: TimeMode): string {
  const atMs = parseApiTime(at);
  if (atMs === null) return at;
  const shownMs = mode === 'local' ? atMs + localOffsetMs(atMs) : atMs;
  return dateOf(shownMs)
    .toISOString()
    .slice(11, 11 + TIME_CHARS);
}

/** Returns the date and time in UTC, for example `2026-11-20 12:00:00.250 UTC`. */
export function utcTime(at: string): string {
  const atMs = parseApiTime(at);
  return atMs === null ? at : `${dateOf(atMs).toISOString().replace('T', ' ').slice(0, -1)} UTC`;
}
