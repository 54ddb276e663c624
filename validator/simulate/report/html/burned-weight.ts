/** Parts of the weight of a run: the most that hosts could get, what they got, and the reason for the burned rest. Pure. */
import type { Report } from '../report.ts';
import { sum } from '../statistics.ts';
import type { EpochShares, PolicyTerms } from '../weight-schemas.ts';
import type { Table } from './section.ts';
import { counted, duration, percent, timeRange, usd } from './text.ts';

type Sources = Pick<Report, 'emission' | 'weight_policy' | 'scenario'>;

/** A part of all weight, with its amounts in USD. `why`: reason for the burned amount; null if nothing was burned. */
type Part = { name: string; most: number; given: number; burned: number; why: string | null };

const HOUR_S = 3_600;
const MAX_TIMES = 5;
/** Two times that differ by less are the same. */
const SAME_HOURS = 0.01;
/** Smallest amount in USD that a row is for. */
const CENT = 0.01;

/** Returns the parts of all weight, in the order of the weight policy. */
export function burnedParts(report: Sources): Part[] {
  const { emission, weight_policy: policy } = report;
  const burned = emission.emitted_usd * policy.burn_share;
  const why = burned < CENT ? null : `the weight policy ${policy.name} always burns it`;
  return [
    { name: 'the part that no host can earn', most: 0, given: 0, burned, why },
    poolPart(report, 'rented'),
    poolPart(report, 'idle'),
  ];
}

/** States for each part why it was burned. */
export const burnedReasons = (report: Sources): string[] => [
  ...burnedParts(report).flatMap(({ name, burned, why }) =>
    why === null ? [] : [`Of ${name}, ${usd(burned)} were burned: ${why}.`],
  ),
  'Weights are whole numbers of 65,535 together, and each host with points gets at least 1. The row “rounding of weights” has the difference.',
];

export function burnedTable(report: Sources): Table {
  const { emission } = report;
  const { emitted_usd: emitted, rewards_usd: rewards, burned_usd: burned } = emission;
  const parts = burnedParts(report);
  const rounding = rewards - sum(parts.map(({ given }) => given));
  const share = (part: number): string => percent(emitted === 0 ? 0 : part / emitted);
  const amount = (part: number): string => `${usd(part)} (${share(part)})`;
  return {
    head: ['Part of all weight', 'At most for hosts', 'Hosts got', 'Burned'],
    rows: [
      ...parts.map(({ name, most, given, burned: rest }) => [
        name,
        most === 0 ? '-' : amount(most),
        amount(given),
        amount(rest),
      ]),
      ...(Math.abs(rounding) < CENT
        ? []
        : [['rounding of weights', '-', usd(rounding), usd(-rounding)]]),
      ['all', '-', amount(rewards), amount(burned)],
    ],
  };
}

function poolPart(
  { emission, weight_policy: policy, scenario }: Sources,
  pool: 'rented' | 'idle',
): Part {
  const worth = scenario.weights_worth_usd_per_hour;
  const most = emission.emitted_usd * policy[`${pool}_share`];
  const earned = emission.epochs.map((epoch) => epoch[`${pool}_pool`].share * epoch.hours * worth);
  const given = sum(earned);
  const without = emission.epochs.filter((epoch) => epoch[`${pool}_pool`].hosts === 0);
  return {
    name: `the pool of ${pool} hosts`,
    most,
    given,
    burned: most - given,
    why: most - given < CENT ? null : poolReason(policy, pool, without),
  };
}

/** `without`: epochs in which no host had points in the pool. */
function poolReason(
  { fee_return: feeReturn, idle_rate: idleRate }: PolicyTerms,
  pool: 'rented' | 'idle',
  without: readonly EpochShares[],
): string {
  const noHost = `the inspections on which these weights depend had met no ${pool} host that earns`;
  if (feeReturn === null || idleRate === null) return timeWithout(without, noHost) ?? '';
  const [earning, nothing] =
    pool === 'rented'
      ? [
          `rented hosts earn ${percent(feeReturn)} of the fees that renters paid with their own money`,
          'no such fee counted for these weights',
        ]
      : [`idle hosts earn ${percent(idleRate)} of their rates`, noHost];
  const limited = `${earning}, which is less than the pool`;
  const time = timeWithout(without, nothing);
  return time === null ? limited : `${limited}; ${time}`;
}

/** Returns null if a host earned in all epochs. */
function timeWithout(without: readonly EpochShares[], because: string): string | null {
  if (without.length === 0) return null;
  const hours = sum(without.map((epoch) => epoch.hours));
  const times = joined(without);
  const shown = times.slice(0, MAX_TIMES).map(({ from, to }) => timeRange(from, to));
  const more = times.length - shown.length;
  const which = `${shown.join('; ')}${more > 0 ? `; and ${counted(more, 'further time')}` : ''}`;
  return `for ${duration(hours * HOUR_S)} (${which}) no host earned, because ${because}`;
}

/** Joins epochs that follow one another. */
function joined(epochs: readonly EpochShares[]): { from: number; to: number }[] {
  const times: { from: number; to: number }[] = [];
  for (const { from_hours: from, hours } of epochs) {
    const last = times.at(-1);
    if (last !== undefined && Math.abs(last.to - from) < SAME_HOURS) last.to = from + hours;
    else times.push({ from, to: from + hours });
  }
  return times;
}
