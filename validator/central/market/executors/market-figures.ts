/**
 * Numbers and prices of all offered nodes by machine, updated with every change of a node, so that a statistic need not
 * count the nodes again. Pure.
 */
import { gpuTotalOf, machineNameOf, minimumGpusOf } from './executor-response.ts';
import type { MarketNode } from './market.store.ts';

/** GPU counts for which capacity is counted. */
export const CAPACITY_SIZES = [1, 2, 4, 8] as const;

/**
 * Figures for one GPU count: the number of nodes that can rent out `size` GPUs at once (`able`), the number of nodes
 * with that many free GPUs (`free`), and the lowest price.
 */
export type SizeFigures = {
  size: number;
  able: number;
  free: number;
  /** 0 if no node can rent out that many GPUs. */
  minPrice: number;
};

/** Figures of one machine. Prices in micro-dollars per GPU and hour. */
export type MachineFigures = {
  machine: string;
  nodes: number;
  availableNodes: number;
  gpus: number;
  freeGpus: number;
  minPrice: number;
  maxPrice: number;
  priceSum: number;
  sizes: SizeFigures[];
};

export type MarketFigures = {
  /** Number of nodes that are not removed, whether or not they are offered. */
  present(): number;
  /** Cheapest machine first, then by name. Machines without an offered node are missing. */
  byMachine(): MachineFigures[];
};

type MachineTally = {
  nodes: number;
  availableNodes: number;
  gpus: number;
  freeGpus: number;
  priceSum: number;
  prices: Prices;
  sizes: { size: number; able: number; free: number; prices: Prices }[];
};

/** Starts with no nodes. A changed node is first removed and then added. */
export function createMarketFigures(present: () => number) {
  const byName = new Map<string, MachineTally>();

  function count(node: MarketNode, by: 1 | -1): void {
    const name = machineNameOf(node);
    const tally = byName.get(name) ?? newTally();
    countIn(tally, node, by);
    if (tally.nodes === 0) byName.delete(name);
    else byName.set(name, tally);
  }

  const figures: MarketFigures = {
    present,
    byMachine: () =>
      [...byName]
        .map(([machine, tally]) => figuresFrom(machine, tally))
        .sort((a, b) => a.minPrice - b.minPrice || (a.machine < b.machine ? -1 : 1)),
  };

  return {
    figures,
    add: (node: MarketNode) => count(node, 1),
    remove: (node: MarketNode) => count(node, -1),
  };
}

function newTally(): MachineTally {
  return {
    nodes: 0,
    availableNodes: 0,
    gpus: 0,
    freeGpus: 0,
    priceSum: 0,
    prices: createPrices(),
    sizes: CAPACITY_SIZES.map((size) => ({ size, able: 0, free: 0, prices: createPrices() })),
  };
}

function countIn(tally: MachineTally, node: MarketNode, by: 1 | -1): void {
  const total = gpuTotalOf(node);
  const { slots_free: free, price_uusd_per_gpu_hour: price } = node;
  tally.nodes += by;
  if (free > 0) tally.availableNodes += by;
  tally.gpus += by * total;
  tally.freeGpus += by * free;
  tally.priceSum += by * price;
  tally.prices.count(price, by);
  for (const each of tally.sizes) {
    if (total < each.size || minimumGpusOf(node) > each.size) continue;
    each.able += by;
    if (free >= each.size) each.free += by;
    each.prices.count(price, by);
  }
}

function figuresFrom(machine: string, { prices, sizes, ...sums }: MachineTally): MachineFigures {
  const { min, max } = prices.range();
  return {
    machine,
    ...sums,
    minPrice: min,
    maxPrice: max,
    sizes: sizes.map(({ prices: some, ...counts }) => ({ ...counts, minPrice: some.range().min })),
  };
}

type Prices = ReturnType<typeof createPrices>;

/** A multiset of prices. It searches for its lowest and highest price again only after the last such price has gone. */
function createPrices() {
  const counts = new Map<number, number>();
  let known: { min: number; max: number } | null = null;

  return {
    count(price: number, by: 1 | -1): void {
      const left = (counts.get(price) ?? 0) + by;
      if (left > 0) counts.set(price, left);
      else counts.delete(price);
      if (known === null) return;
      if (by === -1) {
        if (left === 0 && (price === known.min || price === known.max)) known = null;
      } else known = { min: Math.min(known.min, price), max: Math.max(known.max, price) };
    },

    /** Both are 0 without prices. */
    range(): { min: number; max: number } {
      if (counts.size === 0) return { min: 0, max: 0 };
      known ??= rangeOf(counts.keys());
      return known;
    },
  };
}

function rangeOf(prices: Iterable<number>): { min: number; max: number } {
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  for (const price of prices) {
    min = Math.min(min, price);
    max = Math.max(max, price);
  }
  return { min, max };
}
