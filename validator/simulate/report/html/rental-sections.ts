/** Sections about rentals: refusals, time to RUNNING, interruptions, and costs against quotes. Pure. */
import type { Report } from '../report.ts';
import { ascending, binsOf, mean, quantile, sum } from '../statistics.ts';
import type { Section } from './section.ts';
import { type Axis, barChart, histogram, scatterChart } from './svg.ts';
import { counted, duration, exactUsd, number, percent, usd } from './text.ts';

type Rentals = Report['rentals'];

const COUNT: Axis = { label: 'rentals', format: number };
const BINS = 40;
const MAX_POINTS = 2_000;
const HOURS_PER_DAY = 24;
/** Difference between charge and quote that counts as none. */
const TOLERANCE = 0.02;

export function rentalSections({ rentals, spend }: Pick<Report, 'rentals' | 'spend'>): Section[] {
  return [refusals(rentals), starts(rentals), interruptions(rentals), costs(spend)];
}

const largestFirst = (counts: Readonly<Record<string, number>>): [string, number][] =>
  Object.entries(counts).toSorted(([, a], [, b]) => b - a);

function refusals({ requested, accepted, completed, open, ...rest }: Rentals): Section {
  const reasons = largestFirst(rest.refusals);
  const refused = requested - accepted;
  const failed = sum(Object.values(rest.failed_starts));
  const ran = accepted - failed;
  const bars = [
    { label: 'requested', value: requested },
    ...reasons.map(([reason, value]) => ({ label: `refused: ${reason}`, value, colour: 1 })),
    { label: 'accepted', value: accepted },
    ...largestFirst(rest.failed_starts).map(([reason, value]) => ({
      label: `failed to start: ${reason}`,
      value,
      colour: 1,
    })),
    { label: 'interrupted', value: rest.interruptions.length, colour: 1 },
    { label: 'ended by their renter', value: completed },
    { label: 'still open', value: open },
  ];
  const [first] = reasons;
  return {
    id: 'refusals',
    finding:
      first === undefined
        ? `All ${counted(requested, 'requested rental')} were accepted`
        : `${percent(refused / requested)} of the rentals were refused, ${first[1] === refused ? 'all' : percent(first[1] / refused)} of them because of ${first[0]}`,
    note: 'The way of all requested rentals. A refusal is named by the constraint that no free host met, or by the error code of the answer.',
    svg: barChart(bars, COUNT),
    legend: [],
    table: {
      head: ['Step', 'Rentals', 'Share of the requests'],
      rows: [...bars, { label: 'accepted, and not failed to start', value: ran }].map(
        ({ label, value }) => [
          label,
          String(value),
          percent(requested === 0 ? 0 : value / requested),
        ],
      ),
    },
  };
}

function starts({ start_seconds: unordered, failed_starts: failures }: Rentals): Section {
  const seconds = ascending(unordered);
  const [median, slow] = [quantile(seconds, 0.5), quantile(seconds, 0.95)];
  const failed = sum(Object.values(failures));
  return {
    id: 'start',
    finding:
      median === null || slow === null
        ? 'No rental reached RUNNING'
        : `Half of the pods ran after ${duration(median)}, 95 % after ${duration(slow)}; ${counted(failed, 'rental')} never ran`,
    note: 'Time from the rental until its renter saw the pod RUNNING. Renters look after 15 seconds, and then at pauses that double up to 5 minutes, so the times are upper limits.',
    svg:
      seconds.length === 0
        ? null
        : histogram(
            binsOf(
              seconds.map((value) => value / 60),
              BINS,
            ),
            { label: 'minutes from the rental to RUNNING', format: number },
            { label: 'pods', format: number },
          ),
    legend: [],
    table: {
      head: ['Share of the pods', 'Ran within'],
      rows: [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1].map((share) => [
        percent(share),
        duration(quantile(seconds, share) ?? 0),
      ]),
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
    note: 'Pods that ended while their renter still used them. Renters look once an hour.',
    svg:
      all.length === 0
        ? null
        : histogram(
            [...days]
              .toSorted(([a], [b]) => a - b)
              .map(([day, { length: count }]) => ({ from: day - 1, to: day, count })),
            { label: 'days since the start', format: number },
            { label: 'interruptions', format: number },
          ),
    legend: [],
    table: {
      head: ['Status and reason', 'Interruptions', 'Share of the running pods'],
      rows: reasons.map(([reason, { length: count }]) => [
        reason,
        String(count),
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
        : `Renters paid ${usd(total)} for rentals with quotes of ${usd(quoted)}; ${percent(above.length / spend.length)} paid more than quoted`,
    note: 'Each point is a rental that ended. The quote is the price of the rental for the time that its renter planned. Time in which the host of a pod does not answer is not charged, and interrupted pods end early: both cost less than quoted. Forgotten pods cost more.',
    svg:
      spend.length === 0
        ? null
        : scatterChart(
            [{ name: 'rentals', points }],
            { label: 'quote in USD', format: usd },
            { label: 'paid in USD', format: usd },
          ),
    legend: [],
    table: {
      head: ['Rentals', 'Number', 'Quoted', 'Paid', 'Mean difference'],
      rows: groups.map(([name, group]) => [
        name,
        String(group.length),
        exactUsd(sum(group.map(({ quoted_usd: quote }) => quote))),
        exactUsd(sum(group.map(({ paid_usd: paid }) => paid))),
        exactUsd(mean(group.map((each) => each.paid_usd - each.quoted_usd)) ?? 0),
      ]),
    },
  };
}
