/** The market before, during and after a fault, for equal times. Pure. */
import type { FaultEffect, MarketSample, RegionSample, Report } from '../report.ts';
import { mean, sum } from '../statistics.ts';
import type { Table } from './section.ts';
import { duration, gpuPrice, number, percent, whole } from './text.ts';

type Window = { fromHours: number; toHours: number };
type Figure = { name: string; valueIn(window: Window): string };

const HOUR_S = 3_600;
const HOURS_PER_DAY = 24;
/** Samples are an hour apart, so that shorter faults cannot be compared. */
const MIN_HOURS = 2;
const NONE = '-';

/** Returns null for a fault that is too short to compare. */
export function aroundFault(
  report: Pick<Report, 'regions' | 'requests' | 'market' | 'run'>,
  { from_hours: from, to_hours: end, region }: FaultEffect,
): { caption: string; table: Table } | null {
  const to = end ?? report.run.period_hours;
  const length = to - from;
  if (length < MIN_HOURS) return null;
  const windows = [
    { fromHours: Math.max(0, from - length), toHours: from },
    { fromHours: from, toHours: to },
    { fromHours: to, toHours: Math.min(report.run.period_hours, to + length) },
  ];
  const others = (sample: RegionSample) => sample.region !== region;
  const figures = [
    ...(region === null
      ? []
      : figuresOf(
          `Region ${region}`,
          report.regions.filter((sample) => !others(sample)),
        )),
    ...figuresOf(region === null ? 'All regions' : 'Other regions', report.regions.filter(others)),
    ...requestFigures(report.requests),
    ...priceFigures(report.market),
  ];
  return {
    caption: `Before, during and after: the fault took ${duration(length * HOUR_S)}, and is compared with the same time before and after it, as far as the run has it`,
    table: {
      head: ['Figure', 'Before', 'During', 'After'],
      rows: figures.map(({ name, valueIn }) => [name, ...windows.map(valueIn)]),
    },
  };
}

/** A sample describes the hour that ends with it. */
const within = <T extends { at_hours: number }>(
  samples: readonly T[],
  { fromHours, toHours }: Window,
): T[] => samples.filter(({ at_hours: at }) => at > fromHours && at <= toHours);

function figuresOf(name: string, samples: readonly RegionSample[]): Figure[] {
  /** Mean over the hours of the sum over the regions. */
  const meanOf = (figureOf: (sample: RegionSample) => number, window: Window): number | null =>
    mean(
      [...Map.groupBy(within(samples, window), ({ at_hours: at }) => at).values()].map((hour) =>
        sum(hour.map(figureOf)),
      ),
    );
  const free = (sample: RegionSample) => sample.free_gpus;
  const rented = (sample: RegionSample) => sample.rented_gpus;
  return [
    {
      name: `${name}: GPUs of hosts that passed inspection, mean`,
      valueIn: (window) =>
        shown(
          meanOf((sample) => sample.verified_gpus, window),
          number,
        ),
    },
    {
      name: `${name}: GPUs rented, mean`,
      valueIn: (window) => shown(meanOf(rented, window), number),
    },
    {
      name: `${name}: free GPUs that could be rented, mean`,
      valueIn: (window) => shown(meanOf(free, window), number),
    },
    {
      name: `${name}: share of the rentable GPUs that was rented`,
      valueIn: (window) => {
        const [part, rest] = [meanOf(rented, window), meanOf(free, window)];
        if (part === null || rest === null || part + rest === 0) return NONE;
        return `${percent(part / (part + rest))} of ${number(part + rest)}`;
      },
    },
    {
      name: `${name}: new rentals, per 24 hours`,
      valueIn: (window) =>
        shown(
          meanOf((sample) => sample.accepted * HOURS_PER_DAY, window),
          number,
        ),
    },
    {
      name: `${name}: interrupted pods`,
      valueIn: (window) => whole(sum(within(samples, window).map((each) => each.interruptions))),
    },
  ];
}

const requestFigures = (requests: Report['requests']): Figure[] => [
  {
    name: 'All regions: requests for a rental, per 24 hours',
    valueIn: (window) =>
      shown(mean(within(requests, window).map((each) => each.requested * HOURS_PER_DAY)), number),
  },
  {
    name: 'All regions: refused requests',
    valueIn: (window) => {
      const hours = within(requests, window);
      const all = sum(hours.map(({ requested }) => requested));
      const refused = sum(hours.map((each) => each.refused));
      return all === 0 ? NONE : `${whole(refused)} of ${whole(all)} (${percent(refused / all)})`;
    },
  },
];

const priceFigures = (market: readonly MarketSample[]): Figure[] =>
  [...Map.groupBy(market, ({ gpu }) => gpu)].flatMap(([gpu, samples]) => {
    const figure = (name: string, priceIn: (sample: MarketSample) => number | null): Figure => ({
      name: `All regions, ${gpu}: ${name}, per GPU and hour`,
      valueIn: (window) =>
        shown(
          mean(
            within(samples, window).flatMap((sample) => {
              const price = priceIn(sample);
              return price === null ? [] : [price];
            }),
          ),
          gpuPrice,
        ),
    });
    return [
      figure('price that all providers ask', (sample) => sample.asked_usd),
      figure('offered price of hosts that passed inspection', (sample) => sample.offered_usd),
    ];
  });

const shown = (value: number | null, format: (value: number) => string): string =>
  value === null ? NONE : format(value);
