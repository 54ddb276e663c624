/** Sections about rentals: refusals, starts, interruptions, and costs against quotes. Pure. */
import type { Report } from '../report.ts';
import { mean, sum } from '../statistics.ts';
import { type Bar, barChart } from './bars.ts';
import type { Section } from './section.ts';
import { startSection } from './start-section.ts';
import { type Axis, histogram, scatterChart } from './svg.ts';
import { counted, number, percent, tickUsd, usd, whole } from './text.ts';
import { outcomeWords, refusalWords } from './words.ts';

type Rentals = Report['rentals'];

const COUNT: Axis = { label: 'rentals', format: whole };
const MAX_POINTS = 2_000;
const HOURS_PER_DAY = 24;
/** Difference between charge and quote that counts as none. */
const TOLERANCE = 0.02;

export function rentalSections(
  report: Pick<Report, 'rentals' | 'spend' | 'faults' | 'scenario'>,
): Section[] {
  const { rentals, spend } = report;
  return [refusals(rentals), startSection(report), interruptions(rentals), costs(spend)];
}

const largestFirst = (counts: Readonly<Record<string, number>>): [string, number][] =>
  Object.entries(counts).toSorted(([, a], [, b]) => b - a);

function refusals({ requested, accepted, completed, open, ...rest }: Rentals): Section {
  const reasons = largestFirst(rest.refusals);
  const refused = requested - accepted;
  const failed = sum(Object.values(rest.failed_starts));
  const ran = accepted - failed;
  const bars: (Bar & { code?: string })[] = [
    { label: 'requested', value: requested },
    ...reasons.map(([reason, value]) => ({
      label: `refused: ${refusalWords(reason)}`,
      value,
      colour: 1,
      code: reason,
    })),
    { label: 'accepted', value: accepted },
    ...largestFirst(rest.failed_starts).map(([reason, value]) => ({
      label: outcomeWords(reason),
      value,
      colour: 1,
      code: reason,
    })),
    { label: 'interrupted', value: rest.interruptions.length, colour: 1 },
    { label: 'ended by their renter', value: completed },
    { label: 'still open at the end', value: open },
  ];
  const [first] = reasons;
  return {
    id: 'refusals',
    finding:
      first === undefined
        ? `All ${counted(requested, 'requested rental')} were accepted`
        : `${percent(refused / requested)} of the requested rentals were refused, ${first[1] === refused ? 'all' : percent(first[1] / refused)} of them because ${refusalWords(first[0])}`,
    notes: [
      'The way of all requested rentals, without those of providers that rent their own hosts. A refusal is named by the first constraint that no free host met, or by the error.',
    ],
    plot: barChart(bars, COUNT),
    legend: [],
    table: {
      head: ['Step', 'Code', 'Rentals', 'Share of the requests'],
      rows: [...bars, { label: 'accepted, and not failed to start', value: ran }].map(
        ({ label, value, code = '-' }) => [
          label,
          code,
          whole(value),
          percent(requested === 0 ? 0 : value / requested),
        ],
      ),
    },
  };
}

function interruptions({ interruptions: all, ...rest }: Rentals): Section {
  const days = Map.groupBy(all, ({ at_hours: at }) => Math.floor(at / HOURS_PER_DAY) + 1);
  const reasons = [
    ...Map.groupBy(all, ({ status, reason }) => (reason === '' ? status : `${status} ${reason}`)),
  ].toSorted(([, a], [, b]) => b.length - a.length);
  const ran = rest.start_seconds.length;
  const worst = [...days].toSorted(([, a], [, b]) => b.length - a.length)[0];
  return {
    id: 'interruptions',
    finding:
      worst === undefined
        ? 'No running pod was interrupted'
        : `${percent(ran === 0 ? 0 : all.length / ran)} of the running pods were interrupted; day ${worst[0]} had most (${worst[1].length})`,
    notes: [
      'Pods that ended while their renter still used them, on the day on which the renter observed it.',
    ],
    plot:
      all.length === 0
        ? null
        : histogram(
            [...days]
              .toSorted(([a], [b]) => a - b)
              .map(([day, { length: count }]) => ({ from: day - 1, to: day, count })),
            {
              x: { label: 'days since the start', format: number },
              y: { label: 'interruptions', format: number },
            },
          ),
    legend: [],
    table: {
      head: ['Reason', 'Code', 'Interruptions', 'Share of the running pods'],
      rows: reasons.map(([reason, { length: count }]) => [
        outcomeWords(reason),
        reason,
        whole(count),
        percent(ran === 0 ? 0 : count / ran),
      ]),
    },
  };
}

function costs(spend: Report['spend']): Section {
  const total = sum(spend.map(({ paid_usd: paid }) => paid));
  const quoted = sum(spend.map(({ quoted_usd: quote }) => quote));
  const within = spend.filter(
    ({ quoted_usd: quote, paid_usd: paid }) => Math.abs(paid - quote) <= TOLERANCE * quote,
  );
  const above = spend.filter(
    ({ quoted_usd: quote, paid_usd: paid }) => paid > quote * (1 + TOLERANCE),
  );
  const groups = [
    ['as quoted, within 2 %', within],
    ['more than quoted', above],
    ['less than quoted', spend.filter((each) => !within.includes(each) && !above.includes(each))],
  ] as const;
  // Large runs have too many pods to draw each of them.
  const step = Math.ceil(spend.length / MAX_POINTS);
  const points = spend
    .filter((_, index) => index % step === 0)
    .map(({ quoted_usd: quote, paid_usd: paid }) => [quote, paid] as const);
  return {
    id: 'spend',
    finding:
      spend.length === 0
        ? 'No rental ended'
        : `Renters paid ${usd(total)} for rentals with quotes of ${usd(quoted)}; ${above.length === 0 ? 'none' : percent(above.length / spend.length)} of the rentals cost more than quoted`,
    notes: [
      'Each point is a rental that ended within the period. The quote is the price of the rental for the time that its renter planned. Time in which the host of a pod does not answer is not charged, and interrupted pods end early: both cost less than quoted. Forgotten pods cost more.',
    ],
    plot:
      spend.length === 0
        ? null
        : scatterChart([{ name: 'rentals', points }], {
            x: { label: 'quote in USD', format: tickUsd },
            y: { label: 'paid in USD', format: tickUsd },
          }),
    legend: [],
    table: {
      head: ['Rentals', 'Number', 'Quoted', 'Paid', 'Mean difference'],
      rows: groups.map(([name, group]) => [
        name,
        whole(group.length),
        usd(sum(group.map(({ quoted_usd: quote }) => quote))),
        usd(sum(group.map(({ paid_usd: paid }) => paid))),
        usd(mean(group.map((each) => each.paid_usd - each.quoted_usd)) ?? 0),
      ]),
    },
  };
}
