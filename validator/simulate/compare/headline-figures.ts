/** The figures of a report that comparisons use. Pure. */
import { exactUsd, number, percent } from '../report/html/text.ts';
import type { Report } from '../report/report.ts';
import { compareSelfRental } from '../report/self-rental.ts';
import { ascending, gini, mean, quantile, sum } from '../report/statistics.ts';

export type HeadlineFigure = {
  name: string;
  /** Null if the run has no such value. */
  valueIn(report: Report): number | null;
  format(value: number): string;
};

const ratio = (part: number, whole: number): number | null => (whole === 0 ? null : part / whole);
const refusedOf = ({ rentals }: Report): number => rentals.requested - rentals.accepted;

export const HEADLINE_FIGURES: readonly HeadlineFigure[] = [
  {
    name: 'GPU occupancy',
    valueIn: ({ market }) =>
      ratio(
        sum(market.map((at) => at.rented_gpus)),
        sum(market.map((at) => Math.max(at.rented_gpus, at.verified_gpus))),
      ),
    format: percent,
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
    format: exactUsd,
  },
  {
    name: 'Requested rentals',
    valueIn: ({ rentals }) => rentals.requested,
    format: number,
  },
  {
    name: 'Refused rentals',
    valueIn: (report) => ratio(refusedOf(report), report.rentals.requested),
    format: percent,
  },
  {
    name: 'Rentals that never ran',
    valueIn: ({ rentals }) => ratio(sum(Object.values(rentals.failed_starts)), rentals.accepted),
    format: percent,
  },
  {
    name: 'Median time to RUNNING, seconds',
    valueIn: ({ rentals }) => quantile(ascending(rentals.start_seconds), 0.5),
    format: number,
  },
  {
    name: 'Interrupted pods',
    valueIn: ({ rentals }) => ratio(rentals.interruptions.length, rentals.start_seconds.length),
    format: percent,
  },
  {
    name: 'Renters’ spend',
    valueIn: ({ spend }) => sum(spend.map(({ paid_usd: usd }) => usd)),
    format: exactUsd,
  },
  { name: 'Providers’ income', valueIn: ({ incomes_usd: all }) => sum(all), format: exactUsd },
  {
    name: 'Gini coefficient of incomes',
    valueIn: ({ incomes_usd: all }) => gini(all),
    format: number,
  },
  {
    name: 'Platform fees',
    valueIn: ({ ledger }) => ledger.at(-1)?.balances_usd['platform:fee'] ?? null,
    format: exactUsd,
  },
  {
    name: 'Weight of cheats',
    valueIn: ({ weights }) => shareOf(weights, ({ cheat }) => cheat !== null),
    format: percent,
  },
  {
    name: 'Weight of hosts that their provider rents',
    valueIn: ({ weights }) => shareOf(weights, ({ rents_itself: rentsItself }) => rentsItself),
    format: percent,
  },
  {
    name: 'Gain by renting from oneself, USD per host and day',
    valueIn: ({ weights, run }) => {
      const compared = compareSelfRental(weights, run.hours);
      return compared === null ? null : compared.self.kept - compared.honest.kept;
    },
    format: exactUsd,
  },
  {
    name: 'Cheats that were found',
    valueIn: ({ detection: { cheats } }) =>
      ratio(sum(cheats.map(({ found }) => found)), sum(cheats.map(({ hosts }) => hosts))),
    format: percent,
  },
  {
    name: 'Mean delay of detection, hours',
    valueIn: ({ detection }) => mean(detection.cheats.flatMap(({ delays_hours: all }) => all)),
    format: number,
  },
  {
    name: 'False positives among checks of honest hosts',
    valueIn: ({ detection: { honest } }) =>
      ratio(sum(Object.values(honest.failed_without_fault)), honest.checks),
    format: percent,
  },
];

function shareOf(
  weights: Report['weights'],
  isCounted: (host: Report['weights'][number]) => boolean,
): number | null {
  if (!weights.some(isCounted)) return null;
  return sum(weights.filter(isCounted).map(({ weight_share: share }) => share));
}
