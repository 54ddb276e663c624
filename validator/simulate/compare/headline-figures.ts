/** The figures of a report that comparisons use. Pure. */
import {
  gpuPrice,
  number,
  percent,
  percentagePoints,
  percentagePointsBetween,
  usd,
} from '../report/html/text.ts';
import type { Report } from '../report/report.ts';
import { compareSelfRental } from '../report/self-rental.ts';
import { ascending, gini, mean, quantile, ratio, sum } from '../report/statistics.ts';

export type HeadlineFigure = {
  name: string;
  /** Null if the run has no such value. */
  valueIn(report: Report): number | null;
  format(value: number): string;
  /** Formats the difference of two values; by default like a value. */
  formatDifference?(value: number): string;
  /** Formats the ends of an interval of differences; by default like two values. */
  formatInterval?(low: number, high: number): string;
  /** Direction that is better for the marketplace; absent if neither is. */
  better?: 'higher' | 'lower';
};

/** Shares differ by percentage points. */
export const SHARE = {
  format: percent,
  formatDifference: percentagePoints,
  formatInterval: percentagePointsBetween,
};

const HOURS_PER_DAY = 24;
const refusedOf = ({ rentals }: Report): number => rentals.requested - rentals.accepted;

export const HEADLINE_FIGURES: readonly HeadlineFigure[] = [
  {
    name: 'GPU occupancy',
    better: 'higher',
    valueIn: ({ market }) =>
      ratio(
        sum(market.map((at) => at.rented_gpus)),
        sum(market.map((at) => at.rented_gpus + at.free_gpus)),
      ),
    ...SHARE,
  },
  {
    name: 'Price of rented GPUs, USD per GPU and hour',
    valueIn: ({ market }) => {
      const rented = market.flatMap(({ rented_usd: usd, rented_gpus: gpus }) =>
        usd === null ? [] : [{ usd, gpus }],
      );
      return ratio(
        sum(rented.map(({ usd, gpus }) => usd * gpus)),
        sum(rented.map(({ gpus }) => gpus)),
      );
    },
    format: gpuPrice,
  },
  {
    name: 'Requested rentals',
    valueIn: ({ rentals }) => rentals.requested,
    format: number,
  },
  {
    name: 'Refused rentals',
    better: 'lower',
    valueIn: (report) => ratio(refusedOf(report), report.rentals.requested),
    ...SHARE,
  },
  {
    name: 'Rentals that never ran',
    better: 'lower',
    valueIn: ({ rentals }) => ratio(sum(Object.values(rentals.failed_starts)), rentals.accepted),
    ...SHARE,
  },
  {
    name: 'Median time until a pod runs, seconds',
    better: 'lower',
    valueIn: ({ rentals }) => quantile(ascending(rentals.start_seconds), 0.5),
    format: number,
  },
  {
    name: 'Interrupted pods',
    better: 'lower',
    valueIn: ({ rentals }) => ratio(rentals.interruptions.length, rentals.start_seconds.length),
    ...SHARE,
  },
  {
    name: 'Renters’ spend for rentals that ended',
    valueIn: ({ spend }) => sum(spend.map(({ paid_usd: usd }) => usd)),
    format: usd,
  },
  {
    name: 'Providers’ income from all rentals',
    valueIn: ({ incomes_usd: all }) => sum(all),
    format: usd,
  },
  {
    name: 'Gini coefficient of incomes',
    valueIn: ({ incomes_usd: all }) => gini(all),
    format: number,
  },
  {
    name: 'Fees of the marketplace',
    valueIn: ({ ledger }) => ledger.at(-1)?.balances_usd['platform:fee'] ?? null,
    format: usd,
  },
  {
    name: 'Share of the hosts’ weight that cheats get',
    better: 'lower',
    valueIn: ({ weights }) => shareOf(weights, ({ cheat }) => cheat !== null),
    ...SHARE,
  },
  {
    name: 'Share of the hosts’ weight that self-rented hosts get',
    better: 'lower',
    valueIn: ({ weights }) => shareOf(weights, ({ rents_itself: rentsItself }) => rentsItself),
    ...SHARE,
  },
  {
    name: 'Gain by renting from oneself, USD per host and day',
    better: 'lower',
    valueIn: ({ weights, run }) => {
      const compared = compareSelfRental(weights, run.period_hours);
      return compared === null ? null : compared.self.kept - compared.honest.kept;
    },
    format: usd,
  },
  {
    name: 'Rewards of cheats, USD a day',
    better: 'lower',
    valueIn: (report) => rewardOf(report, ({ cheat }) => cheat !== null),
    format: usd,
  },
  {
    name: 'Rewards of all hosts, USD a day',
    valueIn: (report) => rewardOf(report, () => true),
    format: usd,
  },
  {
    name: 'Share of all weight that was burned',
    valueIn: ({ emission }) => ratio(emission.burned_usd, emission.emitted_usd),
    ...SHARE,
  },
  {
    name: 'Share of the cheating hosts that were found',
    better: 'higher',
    valueIn: ({ detection: { cheats } }) =>
      ratio(sum(cheats.map(({ found }) => found)), sum(cheats.map(({ hosts }) => hosts))),
    ...SHARE,
  },
  {
    name: 'Mean delay of detection, hours',
    better: 'lower',
    valueIn: ({ detection }) => mean(detection.cheats.flatMap(({ delays_hours: all }) => all)),
    format: number,
  },
  {
    name: 'False positives among checks of honest hosts',
    better: 'lower',
    valueIn: ({ detection: { honest } }) =>
      ratio(sum(Object.values(honest.failed_without_fault)), honest.checks),
    ...SHARE,
  },
];

function shareOf(
  weights: Report['weights'],
  isCounted: (host: Report['weights'][number]) => boolean,
): number | null {
  if (!weights.some(isCounted)) return null;
  return sum(weights.filter(isCounted).map(({ weight_share: share }) => share));
}

/** Returns the worth of the hosts' weight in USD a day; null without such hosts. */
function rewardOf(
  { weights, run }: Report,
  isCounted: (host: Report['weights'][number]) => boolean,
): number | null {
  const counted = weights.filter(isCounted);
  if (counted.length === 0) return null;
  const rewards = sum(counted.map(({ reward_usd: reward }) => reward));
  return (rewards / run.period_hours) * HOURS_PER_DAY;
}
