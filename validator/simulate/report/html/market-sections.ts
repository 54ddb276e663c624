/** Sections about the market over time: occupancy, fragmentation and prices, by GPU model. Pure. */
import type { MarketSample, Report } from '../report.ts';
import { mean, sum } from '../statistics.ts';
import type { Section } from './section.ts';
import { type Axis, type Series, stepChart } from './svg.ts';
import { counted, exactUsd, number, percent, usd } from './text.ts';

type Models = readonly (readonly [gpu: string, samples: readonly MarketSample[]])[];

const HOURS_PER_DAY = 24;
const DAYS: Axis = { label: 'days since the start', format: number };
const SHARE: Axis = { label: '', format: percent, atLeast: 1 };

export function marketSections({ market }: Pick<Report, 'market'>): Section[] {
  const models = [...Map.groupBy(market, ({ gpu }) => gpu)];
  return [occupancy(models), fragmentation(models), prices(models)];
}

function occupancy(models: Models): Section {
  const shares = models.map(([gpu, samples]) => ({ gpu, share: occupancyOf(samples) }));
  const ordered = shares.toSorted((a, b) => b.share - a.share);
  const [most, least] = [ordered[0], ordered.at(-1)];
  const finding =
    most === undefined || least === undefined
      ? 'No GPU was offered'
      : `${percent(most.share)} of ${most.gpu} were rented on average${
          least === most ? '' : `, and ${percent(least.share)} of ${least.gpu}`
        }`;
  return {
    id: 'occupancy',
    finding,
    note: 'Share of the rentable GPUs that were rented, at each full hour. Rentable are the GPUs of hosts that passed inspection, and rented GPUs of other hosts, for example of hosts that do not answer.',
    ...plotOf(models, shareRented, {
      ...SHARE,
      label: 'GPUs rented',
    }),
    table: {
      head: ['GPU', 'Hosts', 'GPUs', 'Mean GPUs rented', 'Mean occupancy', 'Highest', 'At the end'],
      rows: models.map(([gpu, samples]) => {
        const each = samples.map((sample) => shareRented(sample) ?? 0);
        const last = samples.at(-1);
        return [
          gpu,
          String(last?.hosts ?? 0),
          String(last?.gpus ?? 0),
          number(mean(samples.map(({ rented_gpus: rented }) => rented)) ?? 0),
          percent(occupancyOf(samples)),
          percent(each.reduce((before, share) => Math.max(before, share), 0)),
          percent(each.at(-1) ?? 0),
        ];
      }),
    },
  };
}

function fragmentation(models: Models): Section {
  const stranded = models.map(([gpu, samples]) => ({
    gpu,
    gpus: mean(samples.map((sample) => sample.stranded_gpus)) ?? 0,
    share: mean(samples.map((sample) => strandedShare(sample) ?? 0)) ?? 0,
    highest: samples.reduce((before, sample) => Math.max(before, sample.stranded_gpus), 0),
  }));
  const worst = stranded.toSorted((a, b) => b.share - a.share)[0];
  return {
    id: 'fragmentation',
    finding:
      worst === undefined || worst.share === 0
        ? 'No free GPU was on a partly rented host'
        : `On average, ${percent(worst.share)} of the free ${worst.gpu} were on partly rented hosts`,
    note: 'Free GPUs of hosts of which another GPU is rented. A rental of a whole host cannot use them. Hosts that are rented as a whole have none.',
    ...plotOf(models, strandedShare, { ...SHARE, label: 'free GPUs on partly rented hosts' }),
    table: {
      head: ['GPU', 'Mean stranded GPUs', 'Mean share of the free GPUs', 'Most stranded GPUs'],
      rows: stranded.map(({ gpu, gpus, share, highest }) => [
        gpu,
        number(gpus),
        percent(share),
        String(highest),
      ]),
    },
  };
}

function prices(models: Models): Section {
  const changes = models.map(([gpu, samples]) => {
    const offered = samples.flatMap(({ offered_usd: price }) => (price === null ? [] : [price]));
    const rented = samples.flatMap(({ rented_usd: price }) => (price === null ? [] : [price]));
    return { gpu, first: offered[0] ?? 0, last: offered.at(-1) ?? 0, rented: mean(rented) };
  });
  const change = ({ first, last }: { first: number; last: number }) =>
    first === 0 ? 0 : last / first - 1;
  const largest = changes.toSorted((a, b) => Math.abs(change(b)) - Math.abs(change(a)))[0];
  return {
    id: 'price',
    finding:
      largest === undefined
        ? 'No price was offered'
        : change(largest) === 0
          ? 'Prices did not change'
          : `The mean price of ${largest.gpu} ${change(largest) < 0 ? 'fell' : 'rose'} by ${percent(Math.abs(change(largest)))}, from ${usd(largest.first)} to ${usd(largest.last)}`,
    note: 'Mean offered price in USD per GPU and hour, weighted by the GPUs of hosts that passed inspection.',
    ...plotOf(models, ({ offered_usd: price }) => price, {
      label: 'USD per GPU and hour',
      format: usd,
    }),
    table: {
      head: ['GPU', 'First price', 'Last price', 'Change', 'Mean price of rented GPUs'],
      rows: changes.map(({ gpu, first, last, rented }) => [
        gpu,
        exactUsd(first),
        exactUsd(last),
        percent(change({ first, last })),
        rented === null ? '-' : exactUsd(rented),
      ]),
    },
  };
}

/** Draws one line for each model; samples without a value are left out. */
function plotOf(
  models: Models,
  valueIn: (sample: MarketSample) => number | null,
  axis: Axis,
): Pick<Section, 'svg' | 'legend'> {
  const series = models.map(
    ([name, samples]): Series => ({
      name,
      points: samples.flatMap((sample) => {
        const value = valueIn(sample);
        return value === null ? [] : [[sample.at_hours / HOURS_PER_DAY, value] as const];
      }),
    }),
  );
  if (series.every(({ points }) => points.length === 0)) return { svg: null, legend: [] };
  return { svg: stepChart(series, DAYS, axis), legend: series.map(({ name }) => name) };
}

const ratio = (part: number, whole: number): number | null => (whole === 0 ? null : part / whole);

/** GPUs of hosts that passed inspection, and rented GPUs of hosts that fail it during the rental. */
const rentable = ({ rented_gpus: rented, verified_gpus: verified }: MarketSample): number =>
  Math.max(rented, verified);

const shareRented = (sample: MarketSample): number | null =>
  ratio(sample.rented_gpus, rentable(sample));

/** Rented GPU hours by rentable GPU hours. */
const occupancyOf = (samples: readonly MarketSample[]): number =>
  ratio(sum(samples.map(({ rented_gpus: rented }) => rented)), sum(samples.map(rentable))) ?? 0;

function strandedShare(sample: MarketSample): number | null {
  const { stranded_gpus: stranded, verified_gpus: all, rented_gpus: rented } = sample;
  return ratio(stranded, Math.max(all - rented, stranded));
}

/** One sentence with the size of the market. */
export const marketSize = ({ market }: Pick<Report, 'market'>): string => {
  const last = market.at(-1)?.at_hours;
  const present = market.filter(({ at_hours: at }) => at === last);
  const gpus = sum(present.map((sample) => sample.gpus));
  return `${counted(sum(present.map(({ hosts }) => hosts)), 'host')} with ${counted(gpus, 'GPU')}`;
};
