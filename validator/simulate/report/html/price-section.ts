/** Section about prices: by GPU model with the causes of the change, and by price strategy with the bounds of prices. Pure. */
import type { MarketSample, Report, StrategyPrices, Usage } from '../report.ts';
import { sum } from '../statistics.ts';
import { type Models, plotOf, type Shades } from './over-time.ts';
import type { Section, Table } from './section.ts';
import { counted, gpuPrice, number, percent, percentagePoints, usd, whole } from './text.ts';
import { strategyWords } from './words.ts';

/** Changes are relative to the first offered price. */
type PriceChange = {
  gpu: string;
  first: number;
  last: number;
  change: number;
  /** Parts of the change: prices that providers changed, and hosts that left or joined the mean. */
  byProviders: number;
  byHosts: number;
  used: Pick<Usage, 'gpu_hours' | 'cost_usd'>;
  /** Amount in USD by which renters paid less than at the first price. */
  saved: number;
};

const CAUSES =
  'The change has two causes. Providers change their prices by their strategies. And hosts that fail inspection, for example because their region is cut off, leave the mean until they pass again: that part is no change of any price.';

export function priceSection(
  models: Models,
  { usage, prices, shades }: Pick<Report, 'usage' | 'prices'> & { shades: Shades },
): Section {
  const changes = models.map(([gpu, samples]) => changeOf(gpu, samples, usage));
  return {
    id: 'price',
    finding: findingOf(changes),
    notes: [
      'Mean offered price in USD per GPU and hour, weighted by the GPUs of hosts that passed inspection. The changes are those between the first and the last hour with a price. A rental keeps the price at which it began. What renters saved is the cost of their charged GPU hours at the first mean price, less their cost at the prices of the rentals: a part of it is due to renters who choose the cheaper hosts.',
      CAUSES,
      boundsNote(prices),
    ],
    ...plotOf(models, ({ offered_usd: price }) => price, {
      axis: { label: 'USD per GPU and hour', format: usd },
      shades,
    }),
    openTables: [{ caption: 'Prices by strategy', table: strategyTable(prices) }],
    table: {
      head: [
        'GPU',
        'First price',
        'Last price',
        'Change',
        'of it by providers',
        'of it by failed inspections',
        'GPU hours charged',
        'Mean price paid',
        'Saved by renters',
      ],
      rows: changes.map(({ gpu, first, last, change, byProviders, byHosts, used, saved }) => [
        gpu,
        gpuPrice(first),
        gpuPrice(last),
        percent(change),
        percentagePoints(byProviders),
        percentagePoints(byHosts),
        number(used.gpu_hours),
        used.gpu_hours === 0 ? '-' : gpuPrice(used.cost_usd / used.gpu_hours),
        usd(saved),
      ]),
    },
  };
}

function changeOf(
  gpu: string,
  samples: readonly MarketSample[],
  usage: readonly Usage[],
): PriceChange {
  const priced = samples.flatMap(({ offered_usd: offered, asked_usd: asked }) =>
    offered === null || asked === null ? [] : [{ offered, asked }],
  );
  const [first, last] = [priced[0], priced.at(-1)];
  const used = usage.find((each) => each.gpu === gpu) ?? { gpu_hours: 0, cost_usd: 0 };
  if (first === undefined || last === undefined || first.offered === 0) {
    return { gpu, first: 0, last: 0, change: 0, byProviders: 0, byHosts: 0, used, saved: 0 };
  }
  const change = last.offered / first.offered - 1;
  const byProviders = (last.asked - first.asked) / first.offered;
  return {
    gpu,
    first: first.offered,
    last: last.offered,
    change,
    byProviders,
    byHosts: change - byProviders,
    used,
    saved: first.offered * used.gpu_hours - used.cost_usd,
  };
}

function findingOf(changes: readonly PriceChange[]): string {
  const largest = changes.toSorted((a, b) => Math.abs(b.change) - Math.abs(a.change))[0];
  if (largest === undefined) return 'No price was offered';
  const { gpu, first, last, change } = largest;
  if (change === 0) return 'Prices did not change';
  const saved = sum(changes.map((each) => each.saved));
  return `The mean price of ${gpu} ${change < 0 ? 'fell' : 'rose'} by ${percent(Math.abs(change))}, from ${gpuPrice(first)} to ${gpuPrice(last)}; compared with the first prices, renters of all models paid ${usd(Math.abs(saved))} ${saved < 0 ? 'more' : 'less'}`;
}

function boundsNote({ floor_share: floor, ceiling_share: ceiling, ...prices }: Report['prices']) {
  const { strategies } = prices;
  const atFloor = sum(strategies.map((each) => each.reached_floor));
  const lowest = strategies.map((each) => each.lowest_share).reduce((a, b) => Math.min(a, b), 1);
  const reached =
    atFloor === 0
      ? `no host reached this floor, and the lowest price was ${percent(lowest)} of the first`
      : `${counted(atFloor, 'host')} reached this floor`;
  return `Strategies stop at ${percent(floor)} of the first price of a host, and at ${percent(ceiling)}: ${reached}.`;
}

function strategyTable({ strategies }: Report['prices']): Table {
  return {
    head: [
      'Providers that …',
      'Strategy',
      'Hosts',
      'Price changes',
      'Mean price at the end, of the first',
      'Lowest price, of the first',
      'Hosts that reached the floor',
      'Hosts that reached the ceiling',
    ],
    rows: strategies.map((each: StrategyPrices) => [
      strategyWords(each.strategy),
      each.strategy,
      whole(each.hosts),
      whole(each.changes),
      percent(each.mean_share),
      percent(each.lowest_share),
      whole(each.reached_floor),
      whole(each.reached_ceiling),
    ]),
  };
}
