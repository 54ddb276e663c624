/** Groups the metered intervals of a statement to lines, and writes it as CSV. Pure. */
import type { PodStatement } from '../api/api.gen.ts';

export type Interval = PodStatement['lines'][number];

export type StatementLine = {
  key: string;
  state: string;
  gpuCount: number;
  /** USD per GPU and hour. */
  pricePerGpu: number;
  /** USD. */
  amount: number;
  /** Time of the API. */
  from: string;
  to: string;
  /** Oldest first. */
  intervals: readonly Interval[];
};

/** One line for each state at one price, in the order of its first interval. */
export function statementLines(intervals: readonly Interval[]): StatementLine[] {
  const groups = Map.groupBy(intervals, keyOf);
  return [...groups].flatMap(([key, members]) => {
    const [first] = members;
    const last = members.at(-1);
    if (first === undefined || last === undefined) return [];
    const { state, gpu_count: gpuCount, price_per_gpu: pricePerGpu, from } = first;
    const amount = members.reduce((sum, each) => sum + each.amount, 0);
    return [{ key, state, gpuCount, pricePerGpu, amount, from, to: last.to, intervals: members }];
  });
}

/** State of the line that sums the periods without a line. */
const FURTHER = 'further_periods';
/** States of lines that are not periods. */
const EXTRA = ['minimum_charge', 'refund', FURTHER];

/** Number of periods without a separate line. */
export function furtherPeriods({
  lines,
  period_count: count,
}: Pick<PodStatement, 'lines' | 'period_count'>): number {
  const listed = lines.filter(({ state }) => !EXTRA.includes(state)).length;
  return lines.some(({ state }) => state === FURTHER) ? count - listed : 0;
}

const MICRO_PER_USD = 1_000_000;

/** USD of the lines that the renter did not pay, because the balance was spent; the marketplace paid them. */
export function borneUsd({ lines, total }: Pick<PodStatement, 'lines' | 'total'>): number {
  const charged = lines.reduce((sum, { amount }) => sum + amount, 0);
  return Math.round((charged - total) * MICRO_PER_USD) / MICRO_PER_USD;
}

function keyOf({ state, gpu_count: count, price_per_gpu: price }: Interval): string {
  return `${state} ${count} ${price}`;
}

const COLUMNS = ['from', 'to', 'state', 'cause', 'gpu_count', 'price_per_gpu', 'amount'] as const;

/** Rows end with CRLF, as RFC 4180 requires. Times are UTC. */
export function statementCsv({ lines }: Pick<PodStatement, 'lines'>): string {
  const rows = lines.map((line) => COLUMNS.map((name) => cellOf(line[name])).join(','));
  return [COLUMNS.join(','), ...rows].map((row) => `${row}\r\n`).join('');
}

function cellOf(value: string | number): string {
  if (typeof value === 'number') return String(value);
  // A leading apostrophe prevents spreadsheets from running a text as a formula.
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
