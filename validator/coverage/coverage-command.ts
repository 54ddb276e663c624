/** The command `policy coverage` of `npm run validator`: which cheats a policy of checks counts, records or passes. */
import { naiveUtc, parseIsoTime } from '#shared/runtime/clock.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import type { CheckPolicy } from '../checks/check-policy.ts';
import { COUNTING, type Coverage, type CoverageOptions, coverageOf } from './coverage.ts';

export type CoverageRequest = {
  /** Words of the command line after `policy`. */
  words: readonly string[];
  /** ISO 8601 time, or a date for its beginning in UTC, at which the policy is judged; null for the present. */
  at: string | null;
} & Pick<CoverageOptions, 'checks' | 'weights'>;

const DATE = /^\d{4}-\d{2}-\d{2}$/;

/** Returns the text to print. Throws ConfigError for invalid arguments. */
export function runCoverageCommand(request: CoverageRequest, nowMs: number): string {
  const { words, at, checks, weights } = request;
  if (words.length !== 1 || words[0] !== 'coverage') {
    throw new ConfigError('policy takes the word coverage; see --help');
  }
  const atMs = at === null ? nowMs : parseIsoTime(DATE.test(at) ? `${at}T00:00Z` : at);
  if (atMs === null) {
    throw new ConfigError(`--at ${at}: not an ISO 8601 time or a date such as 2027-01-15`);
  }
  return coverageText(coverageOf({ atMs, checks, weights }), { atMs, checks });
}

/** One line for each cheat; the last line is `counts N of M`. */
export function coverageText(
  rows: readonly Coverage[],
  { atMs, checks }: { atMs: number; checks: CheckPolicy },
): string {
  const counting = rows.filter(({ outcome }) => COUNTING.has(outcome));
  return [
    `policy ${checks.version} at ${naiveUtc(atMs).slice(0, SECONDS)}Z`,
    '',
    lineOf('outcome', 'inspections', 'earns', 'cheat: checks and reasons'),
    ...rows.map(({ cheat, outcome, reasons, looks, earnsPercent }) => {
      const found = `${cheat.cheat}: ${reasons.join(', ') || '-'}`;
      return lineOf(outcome, looks === null ? '-' : `${looks}`, `${earnsPercent} %`, found);
    }),
    '',
    ...openModes(checks, atMs),
    '',
    `counts ${counting.length} of ${rows.length}`,
    '',
  ].join('\n');
}

/** Length of a time up to its seconds. */
const SECONDS = 19;

const lineOf = (outcome: string, looks: string, earns: string, found: string): string =>
  [outcome.padEnd(10), looks.padEnd(12), earns.padEnd(6), found].join(' ');

/** Checks that only record failures, with the reason and the date of the next decision. */
function openModes({ modes }: CheckPolicy, atMs: number): string[] {
  return Object.entries(modes)
    .filter(([, { mode }]) => mode !== 'enforce')
    .map(([check, { mode, why = 'no reason given', until }]) => {
      const untilMs = until === undefined ? null : parseIsoTime(until);
      const isOverdue = untilMs !== null && untilMs <= atMs;
      const date = until === undefined ? 'no date' : `until ${until.slice(0, 10)}`;
      return `${mode.padEnd(10)} ${check}, ${date}${isOverdue ? ' (overdue)' : ''}: ${why}`;
    });
}
