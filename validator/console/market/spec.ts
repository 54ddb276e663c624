/** Specification of a node for a rental, in the address of the page. Pure. */
import type { RentBySpecRequest } from '../api/api.gen.ts';
import { queryOf } from '../api/client.ts';
import { aNumber, type Checks } from '../parts/url-state.ts';
import { paths } from '../paths.ts';
import type { UrlFilters } from './filters.ts';

const SPEC_NUMBERS = [
  'min_vram_gb',
  'max_price_per_gpu_hour',
  'min_reliability',
  'min_cpus',
  'min_ram_gb',
  'min_disk_gb',
  'min_download_mbps',
  'lat',
  'lon',
  'max_distance_mile',
] as const;
const SPEC_TEXTS = ['gpu_type', 'country', 'region'] as const;

type SpecName = (typeof SPEC_NUMBERS)[number] | (typeof SPEC_TEXTS)[number];
export type UrlSpec = Record<SpecName, string>;
export type NodeSpec = Pick<RentBySpecRequest, SpecName>;

/** State of the page that rents a pod; `node` is empty for a rental by specification. */
export type RentState = UrlSpec & { node: string; gpu_count: string };

export const NO_SPEC: UrlSpec = {
  min_vram_gb: '',
  max_price_per_gpu_hour: '',
  min_reliability: '',
  min_cpus: '',
  min_ram_gb: '',
  min_disk_gb: '',
  min_download_mbps: '',
  lat: '',
  lon: '',
  max_distance_mile: '',
  gpu_type: '',
  country: '',
  region: '',
};

/** Checks of the members of the address. */
export const RENT_CHECKS: Checks = Object.fromEntries(
  [...SPEC_NUMBERS, 'gpu_count'].map((name) => [name, aNumber]),
);

/** Members of the request; absent and malformed values are left out. */
export function specOf(state: UrlSpec): NodeSpec {
  const numbers = SPEC_NUMBERS.flatMap((name) => {
    const value = Number(state[name]);
    return state[name].trim() === '' || !Number.isFinite(value) ? [] : [[name, value] as const];
  });
  const texts = SPEC_TEXTS.flatMap((name) => {
    const text = state[name].trim();
    return text === '' ? [] : [[name, text] as const];
  });
  return Object.fromEntries([...numbers, ...texts]);
}

/** Path of a rental by the filters of the market. */
export function specPath(filters: UrlFilters): string {
  const { gpu_count_gte: count, price_lte: price, ...others } = filters;
  const same = Object.entries(others).filter(([name]) => Object.hasOwn(NO_SPEC, name));
  const query = { gpu_count: count, max_price_per_gpu_hour: price, ...Object.fromEntries(same) };
  return paths.rent + queryOf(query);
}
