/** Compares a price with the allowed range and with the market. Amounts are USD per GPU and hour. Pure. */
import type { ExecutorStatsResponse } from '../api/api.gen.ts';
import type { SharedConfig } from '../api/portal.gen.ts';

export type PriceRange = { reference: number; min: number; max: number };

/** Range of a GPU type, by full or short name; null for an unknown type. */
export function priceRange(config: SharedConfig, gpuType: string): PriceRange | null {
  const { machine_prices: prices } = config;
  const name = prices[gpuType] === undefined ? fullNameOf(Object.keys(prices), gpuType) : gpuType;
  const reference = name === undefined ? undefined : prices[name];
  if (reference === undefined) return null;
  return {
    reference,
    min: reference * config.machine_min_price_rate,
    max: reference * config.machine_max_price_rate,
  };
}

/** The first full name that contains the words of a short type, as the server finds it. */
function fullNameOf(names: readonly string[], shortType: string): string | undefined {
  return names.find((name) => ` ${name.replaceAll('-', ' ')} `.includes(` ${shortType} `));
}

/** Figures of the market for a GPU type; null if no node offers it. */
export function marketOf(
  stats: readonly ExecutorStatsResponse[],
  gpuType: string,
): ExecutorStatsResponse | null {
  const found =
    stats.find(({ machine_name: name }) => name === gpuType) ??
    stats.find(({ gpu_type: short }) => short === gpuType);
  return found === undefined || found.total_gpu_count === 0 ? null : found;
}

type Prices = Pick<
  ExecutorStatsResponse,
  'min_price_per_gpu' | 'avg_price_per_gpu' | 'max_price_per_gpu'
>;

/** Position of a price among the offers of the market, as a sentence. */
export function positionOf(price: number, market: Prices): string {
  const { min_price_per_gpu: min, avg_price_per_gpu: avg, max_price_per_gpu: max } = market;
  if (price < min) return 'It is below all offers of this GPU.';
  if (price > max) return 'It is above all offers of this GPU.';
  if (min === max) return 'It equals all offers of this GPU.';
  if (price <= avg) return 'It is between the lowest and the average offer.';
  return 'It is between the average and the highest offer.';
}

/** Returns why the server would reject a price; null if it is in the range. */
export function priceProblem(price: number | null, range: PriceRange | null): string | null {
  if (price === null || range === null) return null;
  if (price >= range.min && price <= range.max) return null;
  return `The price is outside the allowed range of $${round(range.min)} to $${round(range.max)}.`;
}

function round(usd: number): string {
  return String(Math.round(usd * 1e6) / 1e6);
}
