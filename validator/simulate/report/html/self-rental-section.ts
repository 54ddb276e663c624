/** Section about providers that rent their own hosts. Pure. */
import type { Report } from '../report.ts';
import { compareSelfRental } from '../self-rental.ts';
import { barChart } from './bars.ts';
import type { Section } from './section.ts';
import { percent, usd, whole } from './text.ts';

/** Smallest loss in USD that is called one. */
const CENT = 0.01;

export function selfRentalSection(report: Pick<Report, 'weights' | 'run' | 'scenario'>): Section {
  const compared = compareSelfRental(report.weights, report.run.period_hours);
  const groups =
    compared === null
      ? []
      : ([
          ['rented by their provider', compared.self],
          ['honest', compared.honest],
        ] as const);
  const worth = report.scenario.weights_worth_usd_per_hour;
  return {
    id: 'self-rental',
    finding: compared === null ? 'No provider rented its own host' : findingOf(compared),
    notes: [
      `What a provider keeps is income from rentals, plus rewards for weight, less its payments for rentals of its own host. All weight is taken to be worth ${usd(worth)} an hour; the section about rewards has the part that was burned. Amounts are per host and day; those of honest hosts are scaled to the same GPUs by the rates of the weight policy.`,
    ],
    plot:
      groups.length === 0
        ? null
        : barChart(
            groups.flatMap(([name, { income, rewards, ownRentals }]) => [
              { label: `${name}: income`, value: income },
              { label: `${name}: rewards`, value: rewards },
              { label: `${name}: paid for own rentals`, value: ownRentals, colour: 1 },
            ]),
            { label: 'USD per host and day', format: usd },
          ),
    legend: [],
    table: {
      head: [
        'Hosts',
        'Number',
        'Share of the weight of all hosts',
        'Share of the offered GPUs by rate',
        'Income',
        'Rewards',
        'Paid for own rentals',
        'Kept',
      ],
      rows: groups.map(([name, group]) => [
        name,
        whole(group.hosts),
        percent(group.weightShare),
        percent(group.valueShare),
        ...[group.income, group.rewards, group.ownRentals, group.kept].map(usd),
      ]),
    },
  };
}

function findingOf({ self, honest }: NonNullable<ReturnType<typeof compareSelfRental>>): string {
  const less = honest.kept - self.kept;
  const result = `${self.kept <= -CENT ? 'lost' : 'kept'} ${usd(Math.abs(self.kept))} a day`;
  return `A provider that rented its own host ${result}: ${usd(Math.abs(less))} ${less > 0 ? 'less' : 'more'} than honest hosts with the same GPUs`;
}
