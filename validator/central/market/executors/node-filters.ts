/** Filters of GET /executors and GET /pods. Pure. */
import { microToUsd } from '#shared/api/money.ts';
import type { Executor } from '../../platform/database/tables.ts';
import {
  atLeast,
  atMost,
  BY_GROUP,
  type Constraint,
  type Funnel,
  gpuTypeConstraint,
  oneOf,
} from './constraints.ts';
import { gpuTotalOf, machineNameOf } from './executor-response.ts';
import type { NodeAnnotations } from './node-annotations.ts';
import { MINIMUM_FIGURES, type MinimumFigure } from './node-figures.ts';
import type { ExecutorListQuery, NodeFilterQuery } from './node-filters.schemas.ts';
import type { Listed } from './offer-order.ts';
import { placeConstraints } from './place-constraints.ts';

/** The figures that filters read, of a free node or of the node of a pod. */
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

/** Text of the X-Filter-Funnel header: `offered=12; price_lte=7`. */
export function funnelText(funnel: Funnel): string {
  return funnel.map(({ constraint, remaining }) => `${constraint}=${remaining}`).join('; ');
}

const MINIMUMS = [
  'min_vram_gb',
  'min_cpus',
  'min_ram_gb',
  'min_disk_gb',
  'min_reliability',
] as const satisfies readonly MinimumFigure[];

/** All filters of a search for free nodes; some do not apply to pods. */
export function marketConstraints(
  query: ExecutorListQuery,
  notes: NodeAnnotations,
): Constraint<Listed>[] {
  return [
    ...nodeConstraints(query, notes),
    // A node without a measured speed passes only a minimum of 0.
    ...given(query.min_download_mbps, (least) => ({
      ...atLeast<Listed>('min_download_mbps', least, ({ node }) => node.download_mbps),
      keep: ({ node }: Listed) => (node.download_mbps ?? 0) >= least,
    })),
    ...given(query.nvlink, (wanted) => ({
      ...oneOf<Listed>('nvlink', wanted, ({ node }) => node.nvlink === 1),
      ...BY_GROUP,
    })),
    ...given(query.gpu_type, (wanted) => ({ ...gpuTypeConstraint<Listed>(wanted), ...BY_GROUP })),
    ...MINIMUMS.flatMap((name) =>
      given(query[name], (least) => ({
        ...atLeast<Listed>(name, least, ({ node }) => MINIMUM_FIGURES[name](node)),
        ...(name === 'min_vram_gb' ? BY_GROUP : {}),
      })),
    ),
    // Nodes of a group have equally many GPUs, so their order by price is also that by total price.
    ...given(query.price_per_hour_lte, (most) => ({
      ...atMost<Listed>('price_per_hour_lte', most, ({ node }) =>
        microToUsd(node.price_uusd_per_gpu_hour * gpuTotalOf(node)),
      ),
      index: { by: 'price' as const, keeps: 'cheaper' as const },
    })),
    ...given(query.max_check_age_minutes, (most) =>
      atMost<Listed>('max_check_age_minutes', most, ({ id }) => notes.oldChecks?.get(id) ?? 0),
    ),
    ...given(query.ids, listedIds),
  ];
}

/** Filters that apply to free nodes and to pods. */
export function nodeConstraints(
  query: NodeFilterQuery,
  { bookmarked, request }: NodeAnnotations,
): Constraint<FilterSubject>[] {
  const priceOf = (node: FilterSubject) => node.pricePerGpu;
  const gpusOf = (node: FilterSubject) => node.gpuCount;
  return [
    ...given(query.machine_names, machineNames),
    ...given(query.price_lte, (most) => ({
      ...atMost('price_lte', most, priceOf),
      index: { by: 'price', keeps: 'cheaper' },
    })),
    ...given(query.price_gte, (least) => ({
      ...atLeast('price_gte', least, priceOf),
      index: { by: 'price', keeps: 'dearer' },
    })),
    ...given(query.gpu_count_lte, (most) => ({
      ...atMost('gpu_count_lte', most, gpusOf),
      ...BY_GROUP,
    })),
    ...given(query.gpu_count_gte, (least) => ({
      ...atLeast('gpu_count_gte', least, gpusOf),
      ...BY_GROUP,
    })),
    ...placeConstraints(query, ({ locationJson, lat, lon }: FilterSubject) => ({
      location_json: locationJson,
      lat,
      lon,
    })),
    ...given(query.bookmarked, (wanted) => ({
      ...oneOf<FilterSubject>('bookmarked', wanted, ({ id }) => bookmarked.has(id)),
      ...(wanted ? { index: { by: 'id', ids: bookmarked } } : {}),
    })),
    // A machine request of another account matches no node.
    ...given(query.machine_request_id, (id) =>
      oneOf<FilterSubject>(
        'machine_request_id',
        id,
        () => null,
        (node) => request?.isAnsweredBy(node) ?? false,
      ),
    ),
    ...given(query.collateral_deposited, (wanted) => ({
      ...oneOf<FilterSubject>('collateral_deposited', wanted, (node) => node.collateralDeposited),
      ...BY_GROUP,
    })),
  ];
}

function given<V, T>(value: V | undefined, make: (value: V) => Constraint<T>): Constraint<T>[] {
  return value === undefined ? [] : [make(value)];
}

function listedIds(ids: readonly string[]): Constraint<Listed> {
  const wanted = new Set(ids);
  const idOf = ({ id }: Listed) => id;
  const isListed = ({ id }: Listed) => wanted.has(id);
  return { ...oneOf('ids', ids.join(','), idOf, isListed), index: { by: 'id', ids: wanted } };
}

function machineNames(text: string): Constraint<FilterSubject> {
  const names = new Set(text.split(',').map((name) => name.trim()));
  const nameOf = ({ machineName }: FilterSubject) => machineName;
  const isWanted = (node: FilterSubject) => names.has(node.machineName);
  return { ...oneOf('machine_names', text, nameOf, isWanted), ...BY_GROUP };
}
