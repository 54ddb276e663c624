/** Prices of all hosts of a run, from its events: also of hosts that fail inspection or left. Pure except for its own list. */
import { boundsOf, CEILING_SHARE, FLOOR_SHARE } from '../actors/price-bounds.ts';
import type { JournalEvent } from '../world/journal.ts';
import type { Prices, StrategyPrices } from './report.ts';
import { mean, sum } from './statistics.ts';

export type PriceTally = {
  record(event: JournalEvent): void;
  /** Mean price in USD per GPU and hour of all GPUs of a model; null for a model that no host has. */
  meanUsd(gpu: string): number | null;
  /** Prices by strategy, in the order of their names. */
  prices(): Prices;
};

/** Prices in micro-USD per GPU and hour. */
type PricedHost = {
  gpu: string;
  gpus: number;
  strategy: string;
  first: number;
  present: number;
  lowest: number;
  highest: number;
  changes: number;
};

const MICRO_USD = 1_000_000;

export function createPriceTally(): PriceTally {
  const hosts = new Map<string, PricedHost>();

  function change(host: PricedHost, price: number): void {
    host.present = price;
    host.lowest = Math.min(host.lowest, price);
    host.highest = Math.max(host.highest, price);
    host.changes += 1;
  }

  return {
    record({ kind, executor, ...event }) {
      const price = event['price_uusd'];
      if (executor === undefined || typeof price !== 'number') return;
      const host = hosts.get(executor);
      if (kind === 'node-added') {
        const gpu = String(event['gpu'] ?? '');
        const strategy = String(event['strategy'] ?? '');
        const bounds = { first: price, present: price, lowest: price, highest: price };
        hosts.set(executor, {
          gpu,
          gpus: Number(event['gpus'] ?? 0),
          strategy,
          ...bounds,
          changes: 0,
        });
      } else if (kind === 'price' && event['code'] === null && host !== undefined) {
        change(host, price);
      }
    },
    meanUsd(gpu) {
      const group = [...hosts.values()].filter((host) => host.gpu === gpu);
      const gpus = sum(group.map((host) => host.gpus));
      if (gpus === 0) return null;
      return sum(group.map((host) => host.present * host.gpus)) / gpus / MICRO_USD;
    },
    prices: () => ({
      floor_share: FLOOR_SHARE,
      ceiling_share: CEILING_SHARE,
      strategies: [...Map.groupBy(hosts.values(), ({ strategy }) => strategy)]
        .map(([strategy, group]) => pricesOf(strategy, group))
        .sort((a, b) => (a.strategy < b.strategy ? -1 : 1)),
    }),
  };
}

function pricesOf(strategy: string, hosts: readonly PricedHost[]): StrategyPrices {
  const relative = (priceOf: (host: PricedHost) => number): number[] =>
    hosts.map((host) => priceOf(host) / host.first);
  const reached = (hasReached: (host: PricedHost, bounds: Bounds) => boolean): number =>
    hosts.filter((host) => hasReached(host, boundsInMicroUsd(host.first))).length;
  return {
    strategy,
    hosts: hosts.length,
    changes: sum(hosts.map(({ changes }) => changes)),
    mean_share: mean(relative(({ present }) => present)) ?? 0,
    lowest_share: relative(({ lowest }) => lowest).reduce((a, b) => Math.min(a, b)),
    reached_floor: reached(({ lowest }, { floor }) => lowest <= floor),
    reached_ceiling: reached(({ highest }, { ceiling }) => highest >= ceiling),
  };
}

type Bounds = ReturnType<typeof boundsOf>;

function boundsInMicroUsd(first: number): Bounds {
  const { floor, ceiling } = boundsOf(first / MICRO_USD);
  return { floor: Math.round(floor * MICRO_USD), ceiling: Math.round(ceiling * MICRO_USD) };
}
