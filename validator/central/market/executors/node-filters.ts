/** Filters of GET /executors and GET /pods, and the number of nodes that each one leaves. Pure. */
import { microToUsd } from '#shared/api/money.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Executor } from '../../platform/database/tables.ts';
import type { ExecutorListQuery, NodeFilterQuery } from './executor.schemas.ts';
import { machineNameOf } from './executor-response.ts';
import type { Listed } from './market-view.ts';
import type { NodeAnnotations } from './node-annotations.ts';

/** The figures that filters read: those of a free node, or of the node of a pod. */
export type FilterSubject = {
  id: string;
  machineName: string;
  pricePerGpu: number;
  gpuCount: number;
  lat: number | null;
  lon: number | null;
  /** Stored JSON; null if unknown. */
  locationJson: string | null;
  /** Memory of the smallest GPU; null if nothing was measured. */
  gpuMemoryMib: number | null;
  collateralDeposited: boolean;
};

export type Predicate<T> = { name: string; keep(item: T): boolean };

type FilterColumn =
  | 'id'
  | 'machine_name'
  | 'gpu_type'
  | 'lat'
  | 'lon'
  | 'location_json'
  | 'gpu_memory_mib'
  | 'collateral_deposited';

/** `priceUusd` is the price per GPU and hour, `gpuCount` the number of GPUs offered or rented. */
export function subjectOf(
  node: Pick<Executor, FilterColumn>,
  priceUusd: number,
  gpuCount: number,
): FilterSubject {
  return {
    id: node.id,
    machineName: machineNameOf(node),
    pricePerGpu: microToUsd(priceUusd),
    gpuCount,
    lat: node.lat,
    lon: node.lon,
    locationJson: node.location_json,
    gpuMemoryMib: node.gpu_memory_mib,
    collateralDeposited: node.collateral_deposited === 1,
  };
}

/** Number of nodes after each filter of the query, in order. */
export type Funnel = { name: string; remaining: number }[];

/** Throws 422 for a distance without coordinates. */
export function assertPlace(query: NodeFilterQuery): void {
  if (query.max_distance_mile === undefined) return;
  const missing = (['lat', 'lon'] as const).filter((name) => query[name] === undefined);
  if (missing.length === 0) return;
  throw new ApiError('validation_error', 'Request validation failed', {
    hint: `Send ${missing.join(' and ')} with max_distance_mile.`,
    validationErrors: missing.map((name) => ({
      field: `query.${name}`,
      message: 'Field required with max_distance_mile',
      type: 'missing',
    })),
  });
}

/** Applies the filters in order and counts what each one leaves. */
export function filterNodes<T>(
  items: readonly T[],
  predicates: readonly Predicate<T>[],
): { items: readonly T[]; funnel: Funnel } {
  const funnel: Funnel = [{ name: 'offered', remaining: items.length }];
  let left = items;
  for (const { name, keep } of predicates) {
    left = left.filter(keep);
    funnel.push({ name, remaining: left.length });
  }
  return { items: left, funnel };
}

/** Text of the X-Filter-Funnel header: `offered=12; price_lte=7`. */
export function funnelText(funnel: Funnel): string {
  return funnel.map(({ name, remaining }) => `${name}=${remaining}`).join('; ');
}

/** All filters of a search for free nodes; some do not apply to pods. */
export function marketPredicates(
  query: ExecutorListQuery,
  notes: NodeAnnotations,
): Predicate<Listed>[] {
  const predicates: Predicate<Listed>[] = namedPredicates(query, notes);
  const { min_download_mbps: floor } = query;
  if (floor !== undefined) {
    // A node without a measured speed passes only a minimum of 0.
    const keep = ({ node }: Listed) => (node.download_mbps ?? 0) >= floor;
    predicates.push({ name: 'min_download_mbps', keep });
  }
  const { nvlink } = query;
  if (nvlink !== undefined) {
    predicates.push({ name: 'nvlink', keep: ({ node }) => (node.nvlink === 1) === nvlink });
  }
  return predicates;
}

/** Filters that apply to free nodes and to pods. */
export function namedPredicates(
  query: NodeFilterQuery,
  { bookmarked, request }: NodeAnnotations,
): Predicate<FilterSubject>[] {
  const predicates: Predicate<FilterSubject>[] = [];
  const add = <V>(
    name: string,
    value: V | undefined,
    keep: (node: FilterSubject, value: V) => boolean,
  ) => {
    if (value !== undefined) predicates.push({ name, keep: (node) => keep(node, value) });
  };
  const names = new Set(query.machine_names?.split(',').map((name) => name.trim()));
  add('machine_names', query.machine_names, (node) => names.has(node.machineName));
  add('price_lte', query.price_lte, (node, limit) => node.pricePerGpu <= limit);
  add('price_gte', query.price_gte, (node, limit) => node.pricePerGpu >= limit);
  add('gpu_count_lte', query.gpu_count_lte, (node, limit) => node.gpuCount <= limit);
  add('gpu_count_gte', query.gpu_count_gte, (node, limit) => node.gpuCount >= limit);
  add('max_distance_mile', query.max_distance_mile, (node, miles) => isNear(node, query, miles));
  add('bookmarked', query.bookmarked, (node, wanted) => bookmarked.has(node.id) === wanted);
  // A request that is not the caller's matches no node.
  add(
    'machine_request_id',
    query.machine_request_id,
    (node) => request?.isAnsweredBy(node) ?? false,
  );
  add(
    'collateral_deposited',
    query.collateral_deposited,
    (node, wanted) => node.collateralDeposited === wanted,
  );
  return predicates;
}

/** Returns true if the node is within that distance. A node without a location never is. */
function isNear(node: FilterSubject, query: NodeFilterQuery, miles: number): boolean {
  const { lat, lon } = query;
  if (lat === undefined || lon === undefined || node.lat === null || node.lon === null)
    return false;
  return distanceMiles({ lat, lon }, { lat: node.lat, lon: node.lon }) <= miles;
}

/** Mean radius of the earth. */
const EARTH_RADIUS_MILES = 3958.7613;

export type Coordinates = { lat: number; lon: number };

/** Great-circle distance in miles (haversine). */
export function distanceMiles(from: Coordinates, to: Coordinates): number {
  const latDelta = radians(to.lat - from.lat);
  const lonDelta = radians(to.lon - from.lon);
  const chord =
    Math.sin(latDelta / 2) ** 2 +
    Math.cos(radians(from.lat)) * Math.cos(radians(to.lat)) * Math.sin(lonDelta / 2) ** 2;
  return 2 * EARTH_RADIUS_MILES * Math.asin(Math.min(1, Math.sqrt(chord)));
}

function radians(degrees: number): number {
  return (degrees * Math.PI) / 180;
}
