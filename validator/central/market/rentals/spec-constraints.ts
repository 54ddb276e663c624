/**
 * Constraints of rent-by-spec in the order in which they are applied. A node without a figure does not meet a bound on
 * it. Pure.
 */
import { matchesGpuType, shortGpuType } from '#shared/api/gpu-type.ts';
import { microToUsd } from '#shared/api/money.ts';
import type { MarketNode } from '../executors/executor.service.ts';
import { gpuTotalOf, machineNameOf } from '../executors/executor-response.ts';
import { countryNamesOf, isInCountry, memoryGbOf, storageGbOf } from '../executors/node-figures.ts';
import { refusalOf } from './gpu-choice.ts';
import type { NodeSpec } from './rental.schemas.ts';

export type SpecValue = string | number | boolean | null;

export type Constraint = {
  name: string;
  /** Value sent in the request. */
  requested: SpecValue;
  keep(node: MarketNode): boolean;
  /** The value of the bound that one of these nodes would meet; null if unknown. */
  best(nodes: readonly MarketNode[]): SpecValue;
  /** Distance of the node from the bound. */
  distance(node: MarketNode): number;
  /** Advice for a known best value. */
  remedy(best: SpecValue): string;
};

/** Constraints of the request in their fixed order. The GPU count is always included: absent means the whole node. */
export function constraintsOf(spec: NodeSpec): Constraint[] {
  const wantsDocker = spec.docker_in_docker === true;
  return [
    ...ifPresent(spec.gpu_type, gpuType),
    gpuCount(spec.gpu_count ?? null),
    ...ifPresent(spec.min_vram_gb, (least) =>
      floor('min_vram_gb', least, (node) => memoryGbOf(node.gpu_memory_mib)),
    ),
    ...(wantsDocker ? [dockerInDocker] : []),
    ...ifPresent(spec.country, country),
    ...ifPresent(spec.min_cpus, (least) => floor('min_cpus', least, (node) => node.cpu_cores)),
    ...ifPresent(spec.min_ram_gb, (least) =>
      floor('min_ram_gb', least, (node) => storageGbOf(node.memory_kib)),
    ),
    ...ifPresent(spec.min_disk_gb, (least) =>
      floor('min_disk_gb', least, (node) => storageGbOf(node.disk_free_kib)),
    ),
    ...ifPresent(spec.min_download_mbps, (least) =>
      floor('min_download_mbps', least, (node) => node.download_mbps),
    ),
    ...ifPresent(spec.min_ports, (least) => floor('min_ports', least, (node) => node.ports_free)),
    ...ifPresent(spec.max_price_per_gpu_hour, priceCeiling),
  ];
}

/** Number of GPUs that a rental of the node gets. */
export function gpusFor(node: MarketNode, requested: number | null): number {
  return requested ?? gpuTotalOf(node);
}

function ifPresent<T>(value: T | null | undefined, make: (value: T) => Constraint): Constraint[] {
  return value === null || value === undefined ? [] : [make(value)];
}

function gpuType(wanted: string): Constraint {
  return {
    name: 'gpu_type',
    requested: wanted,
    keep: (node) => matchesGpuType(machineNameOf(node), wanted),
    best: (nodes) => mostCommon(nodes.map((node) => shortGpuType(machineNameOf(node)))),
    distance: () => 0,
    remedy: (best) => `Request another gpu_type, ${best} for example.`,
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
    remedy: (best) => `Request a gpu_count of ${best}.`,
  };
}

const dockerInDocker: Constraint = {
  name: 'docker_in_docker',
  requested: true,
  keep: (node) => node.sysbox_runtime === 1,
  best: (nodes) => (nodes.some((node) => node.sysbox_runtime === 0) ? false : null),
  distance: () => 0,
  remedy: () => 'Omit docker_in_docker.',
};

function country(wanted: string): Constraint {
  const namesOf = (node: MarketNode) => countryNamesOf(node.location_json);
  return {
    name: 'country',
    requested: wanted,
    keep: (node) => isInCountry(node.location_json, wanted),
    best: (nodes) => mostCommon(nodes.flatMap((node) => namesOf(node).slice(0, 1))),
    distance: (node) => (namesOf(node).length === 0 ? 1 : 0),
    remedy: (best) => `Request another country, ${best} for example.`,
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

/** At least two decimals and never rounded, so that the value can be requested. */
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

/** The count nearest to `wanted` that can be rented now; null if none can. */
function nearestCount(wanted: number, node: MarketNode): number | null {
  const offer = offerOf(node);
  const counts = Array.from({ length: offer.total }, (_, index) => index + 1);
  const [nearest] = counts
    .filter((count) => refusalOf(count, offer) === null)
    .toSorted((a, b) => Math.abs(a - wanted) - Math.abs(b - wanted));
  return nearest ?? null;
}

/** Returns the most common value; among equally common ones, the first by name. Null for an empty list. */
function mostCommon(values: readonly string[]): string | null {
  const counts = Map.groupBy(values, (value) => value);
  const ranked = [...counts].toSorted(
    ([a, first], [b, second]) => second.length - first.length || (a < b ? -1 : 1),
  );
  return ranked[0]?.[0] ?? null;
}
