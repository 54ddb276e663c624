/** Sections about the market over time: occupancy, fragmentation and prices, by GPU model. Pure. */
import type { MarketSample, Report, Usage } from '../report.ts';
import { mean, sum } from '../statistics.ts';
import { bandsOf } from './fault-bands.ts';
import type { Section } from './section.ts';
import { type Axis, type Series, stepChart } from './svg.ts';
import { counted, gpuPrice, number, percent, usd, whole } from './text.ts';

type Models = readonly (readonly [gpu: string, samples: readonly MarketSample[]])[];
/** Faults that plots shade. */
type Shades = ReturnType<typeof bandsOf>;

const HOURS_PER_DAY = 24;
const DAYS: Axis = { label: 'days since the start', format: number };
const OCCUPANCY_NOTE =
  'Share of the rentable GPUs that were rented, at each full hour. Rentable are the GPUs of hosts that passed inspection, and rented GPUs of other hosts, for example of hosts that do not answer.';
const SHARE: Axis = { label: '', format: percent, atLeast: 1 };

export function marketSections(
  report: Pick<Report, 'market' | 'regions' | 'usage' | 'faults' | 'run'>,
): Section[] {
  const models = [...Map.groupBy(report.market, ({ gpu }) => gpu)];
  const shades = bandsOf(report);
  return [
    occupancy(models, shades),
    regions(report, shades),
    fragmentation(models, shades),
    prices(models, { usage: report.usage, shades }),
  ];
}

function occupancy(models: Models, shades: Shades): Section {
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
    notes: [OCCUPANCY_NOTE],
    ...plotOf(models, shareRented, { axis: { ...SHARE, label: 'GPUs rented' }, shades }),
    table: {
      head: ['GPU', 'Hosts', 'GPUs', 'Mean GPUs rented', 'Mean occupancy', 'Highest', 'At the end'],
      rows: models.map(([gpu, samples]) => {
        const each = samples.map((sample) => shareRented(sample) ?? 0);
        const last = samples.at(-1);
        return [
          gpu,
          whole(last?.hosts ?? 0),
          whole(last?.gpus ?? 0),
          number(mean(samples.map(({ rented_gpus: rented }) => rented)) ?? 0),
          percent(occupancyOf(samples)),
          percent(each.reduce((before, share) => Math.max(before, share), 0)),
          percent(each.at(-1) ?? 0),
        ];
      }),
    },
  };
}

function fragmentation(models: Models, shades: Shades): Section {
  const stranded = models.map(([gpu, samples]) => ({
    gpu,
    gpus: mean(samples.map((sample) => sample.stranded_gpus)) ?? 0,
    share: mean(samples.map((sample) => strandedShare(sample) ?? 0)) ?? 0,
    highest: samples.reduce((before, sample) => Math.max(before, sample.stranded_gpus), 0),
  }));
  const worst = stranded.toSorted((a, b) => b.share - a.share)[0];
  const isNone = worst === undefined || worst.share === 0;
  return {
    id: 'fragmentation',
    finding: isNone
      ? 'No free GPU was on a partly rented host: whole hosts were rented, or their GPUs were all free'
      : `On average, ${percent(worst.share)} of the free ${worst.gpu} were on partly rented hosts`,
    notes: [
      'Free GPUs of hosts of which another GPU is rented. A rental of a whole host cannot use them.',
    ],
    ...(isNone
      ? { plot: null, legend: [] }
      : plotOf(models, strandedShare, {
          axis: { ...SHARE, label: 'free GPUs on partly rented hosts' },
          shades,
        })),
    table: {
      head: ['GPU', 'Mean number of such GPUs', 'Mean share of the free GPUs', 'Most such GPUs'],
      rows: (isNone ? [] : stranded).map(({ gpu, gpus, share, highest }) => [
        gpu,
        number(gpus),
        percent(share),
        whole(highest),
      ]),
    },
  };
}

function prices(
  models: Models,
  { usage, shades }: { usage: readonly Usage[]; shades: Shades },
): Section {
  const changes = models.map(([gpu, samples]) => {
    const offered = samples.flatMap(({ offered_usd: price }) => (price === null ? [] : [price]));
    const first = offered[0] ?? 0;
    const used = usage.find((each) => each.gpu === gpu) ?? { gpu_hours: 0, cost_usd: 0 };
    const saved = first * used.gpu_hours - used.cost_usd;
    return { gpu, first, last: offered.at(-1) ?? 0, used, saved };
  });
  const saved = sum(changes.map((each) => each.saved));
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
          : `The mean price of ${largest.gpu} ${change(largest) < 0 ? 'fell' : 'rose'} by ${percent(Math.abs(change(largest)))}, from ${gpuPrice(largest.first)} to ${gpuPrice(largest.last)}; compared with the first prices, renters of all models paid ${usd(Math.abs(saved))} ${saved < 0 ? 'more' : 'less'}`,
    notes: [
      'Mean offered price in USD per GPU and hour, weighted by the GPUs of hosts that passed inspection. It also changes when a host fails or passes inspection. The changes are those between the first and the last hour with a price. A rental keeps the price at which it began. What renters saved is the cost of their charged GPU hours at the first mean price, less their cost at the prices of the rentals: a part of it is due to renters who choose the cheaper hosts.',
    ],
    ...plotOf(models, ({ offered_usd: price }) => price, {
      axis: { label: 'USD per GPU and hour', format: usd },
      shades,
    }),
    table: {
      head: [
        'GPU',
        'First price',
        'Last price',
        'Change',
        'GPU hours charged',
        'Mean price paid',
        'Saved by renters',
      ],
      rows: changes.map(({ gpu, first, last, used, saved: less }) => [
        gpu,
        gpuPrice(first),
        gpuPrice(last),
        percent(change({ first, last })),
        number(used.gpu_hours),
        used.gpu_hours === 0 ? '-' : gpuPrice(used.cost_usd / used.gpu_hours),
        usd(less),
      ]),
    },
  };
}

function regions({ regions: samples }: Pick<Report, 'regions'>, shades: Shades): Section {
  const all = [...Map.groupBy(samples, ({ region }) => region)];
  const shares = all.map(([region, group]) => ({ region, share: occupancyOf(group) }));
  const ordered = shares.toSorted((a, b) => b.share - a.share);
  const [most, least] = [ordered[0], ordered.at(-1)];
  return {
    id: 'regions',
    finding:
      most === undefined || least === undefined
        ? 'No region had a host'
        : `${percent(most.share)} of the rentable GPUs of region ${most.region} were rented on average${
            least === most ? '' : `, and ${percent(least.share)} of those of ${least.region}`
          }`,
    notes: [OCCUPANCY_NOTE],
    ...plotOf(all, shareRented, { axis: { ...SHARE, label: 'GPUs rented' }, shades }),
    table: {
      head: [
        'Region',
        'Hosts',
        'GPUs',
        'Mean GPUs of hosts that passed inspection',
        'Mean GPUs rented',
        'Mean occupancy',
        'Rentals',
        'Interrupted pods',
      ],
      rows: all.map(([region, group]) => [
        region,
        whole(group.at(-1)?.hosts ?? 0),
        whole(group.at(-1)?.gpus ?? 0),
        number(mean(group.map(({ verified_gpus: verified }) => verified)) ?? 0),
        number(mean(group.map(({ rented_gpus: rented }) => rented)) ?? 0),
        percent(occupancyOf(group)),
        whole(sum(group.map(({ accepted }) => accepted))),
        whole(sum(group.map(({ interruptions }) => interruptions))),
      ]),
    },
  };
}

type Sample = { at_hours: number; verified_gpus: number; rented_gpus: number };
type Drawn = { axis: Axis; shades: Shades };

/** Draws one line for each group; samples without a value are left out. */
function plotOf<Each extends Sample>(
  groups: readonly (readonly [name: string, samples: readonly Each[]])[],
  valueIn: (sample: Each) => number | null,
  { axis, shades }: Drawn,
): Pick<Section, 'plot' | 'legend' | 'bands'> {
  const series = groups.map(
    ([name, samples]): Series => ({
      name,
      points: samples.flatMap((sample) => {
        const value = valueIn(sample);
        return value === null ? [] : [[sample.at_hours / HOURS_PER_DAY, value] as const];
      }),
    }),
  );
  if (series.every(({ points }) => points.length === 0)) return { plot: null, legend: [] };
  return {
    plot: stepChart(series, { x: DAYS, y: axis, bands: shades.bands }),
    legend: series.map(({ name }) => name),
    bands: shades.meanings,
  };
}

const ratio = (part: number, whole: number): number | null => (whole === 0 ? null : part / whole);

/** GPUs of hosts that passed inspection, and rented GPUs of hosts that fail it during the rental. */
const rentable = ({ rented_gpus: rented, verified_gpus: verified }: Sample): number =>
  Math.max(rented, verified);

const shareRented = (sample: Sample): number | null => ratio(sample.rented_gpus, rentable(sample));

/** Rented GPU hours by rentable GPU hours. */
const occupancyOf = (samples: readonly Sample[]): number =>
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
