/** The filters of GET /executors and how many nodes each one leaves (contract 3.1). Pure. */

import { microToUsd } from '#shared/api/money.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Executor } from '../../platform/database/tables.ts';
import { distanceMiles } from './distance.ts';
import { machineNameOf } from './executor.row.ts';
import type { ExecutorListQuery, NodeFilterQuery } from './executor.schemas.ts';
import type { Listed } from './market-view.ts';
import type { NodeNotes } from './node-notes.ts';

/** What a node filter looks at: a free node, or the node under a pod. */
export type FilterSubject = {
  id: string;
  machineName: string;
  pricePerGpu: number;
  gpuCount: number;
  lat: number | null;
  lon: number | null;
  /** As stored; null when nobody told. */
  locationJson: string | null;
  /** Of the card that has least; null where nothing was measured. */
  gpuMemoryMib: number | null;
  collateralDeposited: boolean;
};

export type Predicate<T> = { name: string; keep(item: T): boolean };

type SeenColumn =
  | 'id'
  | 'machine_name'
  | 'gpu_type'
  | 'lat'
  | 'lon'
  | 'location_json'
  | 'gpu_memory_mib'
  | 'collateral_deposited';

/** A node as filters see it, with what is asked for a GPU of it and how many there are to have. */
export function subjectOf(
  node: Pick<Executor, SeenColumn>,
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

/** Survivors after each filter that the query names, in order. */
export type Funnel = { name: string; remaining: number }[];

/** Throws 422 for a distance without a place to measure it from. */
export function assertPlace(query: NodeFilterQuery): void {
  if (query.max_distance_mile === undefined) return;
  const missing = (['lat', 'lon'] as const).filter((name) => query[name] === undefined);
  if (missing.length === 0) return;
  throw new ApiError('validation_error', 'Request validation failed', {
    hint: `Give ${missing.join(' and ')} beside max_distance_mile.`,
    validationErrors: missing.map((name) => ({
      field: `query.${name}`,
      message: 'Field required with max_distance_mile',
      type: 'missing',
    })),
  });
}

/** Keeps what passes every filter, and counts what each one left. */
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

/** `offered=12; price_lte=7`: the header's text. */
export function funnelText(funnel: Funnel): string {
  return funnel.map(({ name, remaining }) => `${name}=${remaining}`).join('; ');
}

/** Every filter of a search for free nodes, in order: some only a free node has. */
export function marketPredicates(query: ExecutorListQuery, notes: NodeNotes): Predicate<Listed>[] {
  const predicates: Predicate<Listed>[] = namedPredicates(query, notes);
  const { min_download_mbps: floor } = query;
  if (floor !== undefined) {
    // A figure that was not measured fails every floor but none.
    const keep = ({ node }: Listed) => (node.download_mbps ?? 0) >= floor;
    predicates.push({ name: 'min_download_mbps', keep });
  }
  const { nvlink } = query;
  if (nvlink !== undefined) {
    predicates.push({ name: 'nvlink', keep: ({ node }) => (node.nvlink === 1) === nvlink });
  }
  return predicates;
}

/** The filters that the node under a pod has too. */
export function namedPredicates(
  query: NodeFilterQuery,
  { bookmarked, asked }: NodeNotes,
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
  // Nothing answers a request that is not the caller's.
  add('machine_request_id', query.machine_request_id, (node) => asked?.isAnsweredBy(node) ?? false);
  add(
    'collateral_deposited',
    query.collateral_deposited,
    (node, wanted) => node.collateralDeposited === wanted,
  );
  return predicates;
}

/** A node that tells no place is near nothing. */
function isNear(node: FilterSubject, query: NodeFilterQuery, miles: number): boolean {
  const { lat, lon } = query;
  if (lat === undefined || lon === undefined || node.lat === null || node.lon === null)
    return false;
  return distanceMiles({ lat, lon }, { lat: node.lat, lon: node.lon }) <= miles;
}
