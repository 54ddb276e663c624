/** Start of a view in a log: a number of lines, a duration, or a time. Pure. */

/** Query of the API. */
export type LogStart = { tail: number } | { since: string };

export type StartChoice = { value: string; label: string };

/** Choices of the view. The value is also a member of its address. */
export const STARTS: readonly StartChoice[] = [
  { value: '100', label: 'Last 100 lines' },
  { value: '1000', label: 'Last 1,000 lines' },
  { value: '10000', label: 'Last 10,000 lines' },
  { value: '15m', label: 'Last 15 minutes' },
  { value: '1h', label: 'Last hour' },
  { value: '24h', label: 'Last 24 hours' },
  { value: 'all', label: 'From the beginning' },
];
export const DEFAULT_START = '1000';

const MAX_TAIL = 10_000;
const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000 };
const BEGINNING = '1970-01-01T00:00:00Z';

/** Ports for times, because only `browser/clock.ts` reads the clock. */
export type StartTimes = {
  nowMs: number;
  /** Parses a local or UTC time to milliseconds; null if it is none. */
  parse(text: string): number | null;
  /** Returns an ISO 8601 time in UTC. */
  format(epochMs: number): string;
};

/** Reads a value of `STARTS`, or a time; null if it is neither. */
export function parseStart(value: string, { nowMs, parse, format }: StartTimes): LogStart | null {
  if (value === 'all') return { since: BEGINNING };
  if (/^\d{1,5}$/.test(value)) return { tail: Math.min(Number(value), MAX_TAIL) };
  const [, amount, unit = ''] = /^(\d{1,4})([mh])$/.exec(value) ?? [];
  const unitMs = UNIT_MS[unit];
  if (amount !== undefined && unitMs !== undefined) {
    return { since: format(nowMs - Number(amount) * unitMs) };
  }
  const atMs = /^\d{4}-\d\d-\d\dT/.test(value) ? parse(value) : null;
  return atMs === null ? null : { since: format(atMs) };
}
