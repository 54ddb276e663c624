/** Sections about the market over time: occupancy and income by GPU model, regions, and fragmentation. Pure. */
import type { MarketSample, Report } from '../report.ts';
import { mean, ratio, sum } from '../statistics.ts';
import { bandsOf } from './fault-bands.ts';
import { type Models, occupancyOf, plotOf, type Shades, shareRented } from './over-time.ts';
import { priceSection } from './price-section.ts';
import type { Section, Table } from './section.ts';
import type { Axis } from './svg.ts';
import { counted, number, percent, usd, whole } from './text.ts';

const HOURS_PER_DAY = 24;
const OCCUPANCY_NOTE =
  'Share of the rentable GPUs that were rented, at each full hour. Rentable are free GPUs of hosts that passed inspection, and rented GPUs, also those of hosts that do not answer.';
const SHARE: Axis = { label: '', format: percent, atLeast: 1 };

export function marketSections(
  report: Pick<Report, 'market' | 'regions' | 'usage' | 'prices' | 'faults' | 'run' | 'weights'>,
): Section[] {
  const models = [...Map.groupBy(report.market, ({ gpu }) => gpu)];
  const shades = bandsOf(report);
  return [
    occupancy(models, { ...report, shades }),
    regions(report, shades),
    fragmentation(models, shades),
    priceSection(models, { ...report, shades }),
  ];
}

type Earned = Pick<Report, 'weights' | 'run'>;

function occupancy(models: Models, { shades, ...report }: Earned & { shades: Shades }): Section {
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
    ...incomeTables(models, report),
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

/** Nothing for a run that ended before the first weights: income of hosts is reported with them. */
function incomeTables(models: Models, { weights, run }: Earned): Pick<Section, 'openTables'> {
  if (weights.length === 0) return {};
  const days = run.period_hours / HOURS_PER_DAY;
  const rows = models.map(([gpu, samples]): Table['rows'][number] => {
    const hosts = weights.filter((host) => host.gpu === gpu);
    const gpus = mean(samples.map((sample) => sample.gpus)) ?? 0;
    const income = sum(hosts.map((host) => host.income_usd));
    return [
      gpu,
      number(gpus),
      percent(occupancyOf(samples)),
      usd(income),
      usd(gpus === 0 ? 0 : income / gpus / days),
    ];
  });
  const head = ['GPU', 'Mean GPUs', 'Rented share', 'Income', 'Income per GPU and day'];
  const caption = 'Income from rentals by GPU model, after the marketplace’s fee';
  return { openTables: [{ caption, table: { head, rows } }] };
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
        'Mean free GPUs that could be rented',
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
        number(mean(group.map(({ free_gpus: free }) => free)) ?? 0),
        percent(occupancyOf(group)),
        whole(sum(group.map(({ accepted }) => accepted))),
        whole(sum(group.map(({ interruptions }) => interruptions))),
      ]),
    },
  };
}

function strandedShare(sample: MarketSample): number | null {
  return ratio(sample.stranded_gpus, sample.free_gpus);
}

/** One sentence with the size of the market. */
export const marketSize = ({ market }: Pick<Report, 'market'>): string => {
  const last = market.at(-1)?.at_hours;
  const present = market.filter(({ at_hours: at }) => at === last);
  const gpus = sum(present.map((sample) => sample.gpus));
  return `${counted(sum(present.map(({ hosts }) => hosts)), 'host')} with ${counted(gpus, 'GPU')}`;
};
