/** Filters of the market in the address of the page, whose names are those of the API. Pure. */
import type { MachineRequestCreate } from '../api/api.gen.ts';
import { aNumber, type Checks, oneOf } from '../parts/url-state.ts';

/** Filters with a number. An absent filter is the empty text. */
export const NUMBER_FILTERS = [
  'gpu_count_gte',
  'min_vram_gb',
  'price_lte',
  'price_per_hour_lte',
  'lat',
  'lon',
  'max_distance_mile',
  'min_reliability',
  'min_cpus',
  'min_ram_gb',
  'min_disk_gb',
  'max_check_age_minutes',
] as const;
export const TEXT_FILTERS = ['gpu_type', 'country', 'region'] as const;

export type NumberFilter = (typeof NUMBER_FILTERS)[number];
export type TextFilter = (typeof TEXT_FILTERS)[number];
/** Values of the fields; null or empty while a filter is absent. */
export type FilterFields = Record<NumberFilter, number | null> &
  Record<TextFilter, string> & { bookmarked: boolean };
/** Filters as the address has them. */
export type UrlFilters = Record<NumberFilter | TextFilter, string> & { bookmarked: boolean };

export type MarketState = UrlFilters & {
  page: number;
  sort: string;
  /** Ids of the compared nodes, separated by commas. */
  compare: string;
};

export const MAX_COMPARED = 4;
export const PAGE_SIZE = 25;

export const NO_FILTERS: UrlFilters = {
  gpu_count_gte: '',
  min_vram_gb: '',
  price_lte: '',
  price_per_hour_lte: '',
  lat: '',
  lon: '',
  max_distance_mile: '',
  min_reliability: '',
  min_cpus: '',
  min_ram_gb: '',
  min_disk_gb: '',
  max_check_age_minutes: '',
  gpu_type: '',
  country: '',
  region: '',
  bookmarked: false,
};
export const MARKET_DEFAULTS: MarketState = { ...NO_FILTERS, page: 1, sort: 'price', compare: '' };

const SORTS = ['price', 'reliability'] as const;
export type MarketSort = (typeof SORTS)[number];

/** Checks of the members of the address. */
export const MARKET_CHECKS: Checks = {
  ...Object.fromEntries(NUMBER_FILTERS.map((name) => [name, aNumber])),
  sort: oneOf(SORTS),
};

/** Query of `GET /executors`. Values that are not numbers are ignored. */
export function queryOfMarket(state: MarketState) {
  const sort: MarketSort = state.sort === 'reliability' ? 'reliability' : 'price';
  return {
    ...requestedIn(state),
    view: 'summary' as const,
    explain: true,
    sort,
    page: Math.max(1, Math.trunc(state.page)),
    size: PAGE_SIZE,
  };
}

/** Filters that are present, with the types of the API. */
export function requestedIn(
  state: UrlFilters,
): Partial<Record<NumberFilter, number> & Record<TextFilter, string>> & { bookmarked?: true } {
  const fields = fieldsOf(state);
  const numbers = NUMBER_FILTERS.flatMap((name) =>
    fields[name] === null ? [] : [[name, fields[name]] as const],
  );
  const texts = TEXT_FILTERS.flatMap((name) =>
    fields[name] === '' ? [] : [[name, fields[name]] as const],
  );
  return {
    ...Object.fromEntries([...numbers, ...texts]),
    ...(fields.bookmarked ? { bookmarked: true as const } : {}),
  };
}

export function fieldsOf(state: UrlFilters): FilterFields {
  const numbers = NUMBER_FILTERS.map((name) => [name, numberIn(state[name])] as const);
  const texts = TEXT_FILTERS.map((name) => [name, state[name].trim()] as const);
  return {
    ...(Object.fromEntries(numbers) as Record<NumberFilter, number | null>),
    ...(Object.fromEntries(texts) as Record<TextFilter, string>),
    bookmarked: state.bookmarked,
  };
}

export function urlFiltersOf(fields: FilterFields): UrlFilters {
  const numbers = NUMBER_FILTERS.map((name) => [name, String(fields[name] ?? '')] as const);
  const texts = TEXT_FILTERS.map((name) => [name, fields[name].trim()] as const);
  return {
    ...(Object.fromEntries([...numbers, ...texts]) as Record<NumberFilter | TextFilter, string>),
    bookmarked: fields.bookmarked,
  };
}

function numberIn(text: string): number | null {
  const value = Number(text);
  return text.trim() === '' || !Number.isFinite(value) ? null : value;
}

/** Ids of the compared nodes, at most four. */
export function comparedIn({ compare }: Pick<MarketState, 'compare'>): string[] {
  const ids = compare.split(',').filter((id) => id !== '');
  return [...new Set(ids)].slice(0, MAX_COMPARED);
}

/** Adds or removes a node of the comparison. A fifth node is not added. */
export function toggleCompared(state: Pick<MarketState, 'compare'>, id: string): string {
  const ids = comparedIn(state);
  const next = ids.includes(id) ? ids.filter((other) => other !== id) : [...ids, id];
  return next.slice(0, MAX_COMPARED).join(',');
}

/** Machine request with the filters that a request can have. */
export function machineRequestOf(state: UrlFilters): Required<
  Pick<MachineRequestCreate, 'gpu_class'>
> & {
  gpu_count: number | null;
  hourly_budget: number | null;
  country: string;
  min_vram_gb: number | null;
} {
  const fields = fieldsOf(state);
  return {
    gpu_class: fields.gpu_type,
    gpu_count: fields.gpu_count_gte,
    hourly_budget: fields.price_per_hour_lte,
    country: fields.country,
    min_vram_gb: fields.min_vram_gb,
  };
}
