/**
 * The constraints of rent-by-spec in the order in which they are applied (marketplace reference 1.9). Pure.
 * A figure that a node does not report fails its bound.
 */
import { matchesGpuType, shortGpuType } from '#shared/api/gpu-type.ts';
import { microToUsd } from '#shared/api/money.ts';
import { gpuTotalOf, machineNameOf } from '../executors/executor.row.ts';
import type { MarketNode } from '../executors/executor.service.ts';
import { countryNamesOf, isInCountry, memoryGbOf, storageGbOf } from '../executors/node-figures.ts';
import { refusalOf } from './gpu-choice.ts';
import type { NodeSpec } from './rent-by-spec.schemas.ts';

export type SpecValue = string | number | boolean | null;

export type Constraint = {
  name: string;
  /** As it stands in the request. */
  requested: SpecValue;
  keep(node: MarketNode): boolean;
  /** The value of the bound that would let one of these nodes pass; null when none tells. */
  best(nodes: readonly MarketNode[]): SpecValue;
  /** How far the node is from the bound: the smallest is the nearest. */
  distance(node: MarketNode): number;
  /** What to do, given a best value that is not null. */
  remedy(best: SpecValue): string;
};

/** In their fixed order; those that the request leaves out are left out, but for the GPU count: absent means whole. */
export function constraintsOf(spec: NodeSpec): Constraint[] {
  const wantsDocker = spec.docker_in_docker === true;
  return [
    ...given(spec.gpu_type, gpuType),
    gpuCount(spec.gpu_count ?? null),
    ...given(spec.min_vram_gb, (least) =>
      floor('min_vram_gb', least, (node) => memoryGbOf(node.gpu_memory_mib)),
    ),
    ...(wantsDocker ? [dockerInDocker] : []),
    ...given(spec.country, country),
    ...given(spec.min_cpus, (least) => floor('min_cpus', least, (node) => node.cpu_cores)),
    ...given(spec.min_ram_gb, (least) =>
      floor('min_ram_gb', least, (node) => storageGbOf(node.memory_kib)),
    ),
    ...given(spec.min_disk_gb, (least) =>
      floor('min_disk_gb', least, (node) => storageGbOf(node.disk_free_kib)),
    ),
    ...given(spec.min_download_mbps, (least) =>
      floor('min_download_mbps', least, (node) => node.download_mbps),
    ),
    ...given(spec.min_ports, (least) => floor('min_ports', least, (node) => node.ports_free)),
    ...given(spec.max_price_per_gpu_hour, priceCeiling),
  ];
}

/** How many GPUs a rental of the node takes. */
export function gpusFor(node: MarketNode, requested: number | null): number {
  return requested ?? gpuTotalOf(node);
}

function given<T>(value: T | null | undefined, make: (value: T) => Constraint): Constraint[] {
  return value === null || value === undefined ? [] : [make(value)];
}

function gpuType(wanted: string): Constraint {
  return {
    name: 'gpu_type',
    requested: wanted,
    keep: (node) => matchesGpuType(machineNameOf(node), wanted),
    best: (nodes) => mostCommon(nodes.map((node) => shortGpuType(machineNameOf(node)))),
    distance: () => 0,
    remedy: (best) => `Ask for another gpu_type, ${best} for example.`,
  };
}

function gpuCount(requested: number | null): Constraint {
  const keep = (node: MarketNode) => refusalOf(gpusFor(node, requested), offerOf(node)) === null;
  const nearestOf = (node: MarketNode) => nearestCount(gpusFor(node, requested), node);
  const distance = (node: MarketNode) => {
    const nearest = nearestOf(node);
    return nearest === null
      ? Number.POSITIVE_INFINITY
      : Math.abs(nearest - gpusFor(node, requested));
  };
  return {
    name: 'gpu_count',
    requested,
    keep,
    best: (nodes) => {
      const nearest = Map.groupBy(nodes, distance);
      const [node] = nearest.get(nearest.keys().reduce((a, b) => Math.min(a, b))) ?? [];
      return node === undefined ? null : nearestOf(node);
    },
    distance,
    remedy: (best) => `Ask for a gpu_count of ${best}.`,
  };
}

const dockerInDocker: Constraint = {
  name: 'docker_in_docker',
  requested: true,
  keep: (node) => node.sysbox_runtime === 1,
  best: (nodes) => (nodes.some((node) => node.sysbox_runtime === 0) ? false : null),
  distance: () => 0,
  remedy: () => 'Ask without docker_in_docker.',
};

function country(wanted: string): Constraint {
  const namesOf = (node: MarketNode) => countryNamesOf(node.location_json);
  return {
    name: 'country',
    requested: wanted,
    keep: (node) => isInCountry(node.location_json, wanted),
    best: (nodes) => mostCommon(nodes.flatMap((node) => namesOf(node).slice(0, 1))),
    distance: (node) => (namesOf(node).length === 0 ? 1 : 0),
    remedy: (best) => `Ask for another country, ${best} for example.`,
  };
}

function floor(
  name: string,
  least: number,
  figure: (node: MarketNode) => number | null,
): Constraint {
  return {
    name,
    requested: least,
    keep: (node) => (figure(node) ?? Number.NEGATIVE_INFINITY) >= least,
    best: (nodes) => {
      const known = nodes.map(figure).filter((value) => value !== null);
      return known.length === 0 ? null : known.reduce((a, b) => Math.max(a, b));
    },
    distance: (node) => least - (figure(node) ?? Number.NEGATIVE_INFINITY),
    remedy: (best) => `Lower ${name} to ${best} or less.`,
  };
}

function priceCeiling(most: number): Constraint {
  const priceOf = (node: MarketNode) => microToUsd(node.price_uusd_per_gpu_hour);
  return {
    name: 'max_price_per_gpu_hour',
    requested: most,
    keep: (node) => priceOf(node) <= most,
    best: (nodes) => nodes.map(priceOf).reduce((a, b) => Math.min(a, b)),
    distance: (node) => priceOf(node) - most,
    remedy: (best) => `Raise max_price_per_gpu_hour to ${dollars(Number(best))} or more.`,
  };
}

/** At least two places, never rounded: what is told here can be asked for. */
export function dollars(usd: number): string {
  return usd.toLocaleString('en-US', {
    minimumFractionDigits: 2,
    maximumFractionDigits: 6,
    useGrouping: false,
  });
}

function offerOf(node: MarketNode) {
  return {
    total: gpuTotalOf(node),
    free: node.slots_free,
    minimum: node.min_gpu_count,
    canSplit: node.can_split === 1,
  };
}

/** The count nearest to `wanted` that the node rents now; null when it rents none. */
function nearestCount(wanted: number, node: MarketNode): number | null {
  const offer = offerOf(node);
  const counts = Array.from({ length: offer.total }, (_, index) => index + 1);
  const [nearest] = counts
    .filter((count) => refusalOf(count, offer) === null)
    .toSorted((a, b) => Math.abs(a - wanted) - Math.abs(b - wanted));
  return nearest ?? null;
}

/** Of equally common ones the first by name. */
function mostCommon(values: readonly string[]): string | null {
  const counts = Map.groupBy(values, (value) => value);
  const ranked = [...counts].toSorted(
    ([a, first], [b, second]) => second.length - first.length || (a < b ? -1 : 1),
  );
  return ranked[0]?.[0] ?? null;
}
