/**
 * Constraints of rent-by-spec in the order in which they are applied. A node that does not report a figure does not
 * meet a limit on this figure. Pure.
 */
import { microToUsd } from '#shared/api/money.ts';
import {
  atLeast,
  atMost,
  BY_GROUP,
  type Constraint,
  type ConstraintValue,
  gpuTypeConstraint,
  oneOf,
} from '../executors/constraints.ts';
import type { MarketNode } from '../executors/executor.service.ts';
import { gpuTotalOf } from '../executors/executor-response.ts';
import { MINIMUM_FIGURES, type MinimumFigure } from '../executors/node-figures.ts';
import { placeConstraints } from '../executors/place-constraints.ts';
import { canRent } from './gpu-choice.ts';
import type { NodeSpec } from './rent-by-spec.schemas.ts';

/** A node of the market, as the search for a specification receives it. */
export type Candidate = { id: string; machineName: string; node: MarketNode };

export type SpecConstraint = Constraint<Candidate> & {
  /** Advice if the best value is known. */
  remedy(best: ConstraintValue): string;
};

/**
 * Constraints of the request in their fixed order. The constraint on the GPU count is always included; an absent count
 * means the whole node.
 */
export function constraintsOf(spec: NodeSpec): SpecConstraint[] {
  const wantsDocker = spec.docker_in_docker === true;
  return [
    ...ifPresent(spec.gpu_type, gpuType),
    gpuCount(spec.gpu_count ?? null),
    ...minimum(spec, 'min_vram_gb').map((each) => ({ ...each, ...BY_GROUP })),
    ...(wantsDocker ? [dockerInDocker] : []),
    ...places(spec),
    ...minimum(spec, 'min_cpus'),
    ...minimum(spec, 'min_ram_gb'),
    ...minimum(spec, 'min_disk_gb'),
    ...ifPresent(spec.min_download_mbps, (least) =>
      floor('min_download_mbps', least, (node) => node.download_mbps),
    ),
    ...minimum(spec, 'min_ports'),
    ...minimum(spec, 'min_reliability'),
    ...ifPresent(spec.max_price_per_gpu_hour, priceCeiling),
  ];
}

/** Number of GPUs that a rental of the node would get. */
export function gpusFor(node: MarketNode, requested: number | null): number {
  return requested ?? gpuTotalOf(node);
}

function ifPresent<T>(
  value: T | null | undefined,
  make: (value: T) => SpecConstraint,
): SpecConstraint[] {
  return value === null || value === undefined ? [] : [make(value)];
}

function gpuType(wanted: string): SpecConstraint {
  return {
    ...gpuTypeConstraint<Candidate>(wanted),
    ...BY_GROUP,
    remedy: (best) => `Request another gpu_type, for example ${best}.`,
  };
}

function gpuCount(requested: number | null): SpecConstraint {
  const offered = ({ node }: Candidate) => nearestCount(gpusFor(node, requested), node);
  return {
    ...BY_GROUP,
    name: 'gpu_count',
    requested,
    keep: ({ node }) => canRent(gpusFor(node, requested), offerOf(node)),
    offered,
    distance: (candidate) => {
      const nearest = offered(candidate) ?? Number.POSITIVE_INFINITY;
      return Math.abs(nearest - gpusFor(candidate.node, requested));
    },
    remedy: (best) => `Request a gpu_count of ${best}.`,
  };
}

const dockerInDocker: SpecConstraint = {
  ...oneOf<Candidate>('docker_in_docker', true, ({ node: { sysbox_runtime: sysbox } }) =>
    sysbox === null ? null : sysbox === 1,
  ),
  ...BY_GROUP,
  remedy: () => 'Omit docker_in_docker.',
};

function places(spec: NodeSpec): SpecConstraint[] {
  return placeConstraints<Candidate>(spec, ({ node }) => node).map((constraint) => ({
    ...constraint,
    remedy: (best) =>
      constraint.name === 'max_distance_mile'
        ? `Raise max_distance_mile to ${best} or more.`
        : `Request another ${constraint.name}, for example ${best}.`,
  }));
}

function minimum(spec: NodeSpec, name: MinimumFigure): SpecConstraint[] {
  return ifPresent(spec[name], (least) => floor(name, least, MINIMUM_FIGURES[name]));
}

function floor(
  name: string,
  least: number,
  figure: (node: MarketNode) => number | null,
): SpecConstraint {
  return {
    ...atLeast<Candidate>(name, least, ({ node }) => figure(node)),
    remedy: (best) => `Lower ${name} to ${best} or less.`,
  };
}

function priceCeiling(most: number): SpecConstraint {
  return {
    ...atMost<Candidate>('max_price_per_gpu_hour', most, ({ node }) =>
      microToUsd(node.price_uusd_per_gpu_hour),
    ),
    index: { by: 'price', keeps: 'cheaper' },
    remedy: (best) => `Raise max_price_per_gpu_hour to ${dollars(Number(best))} or more.`,
  };
}

/** Formats an amount with at least two decimals, never rounded, so that the value can be requested. */
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
    isLaunching: false,
  };
}

/** Returns the count nearest to `wanted` that can be rented now, the lower of two; null if none can be rented. */
function nearestCount(wanted: number, node: MarketNode): number | null {
  const offer = offerOf(node);
  let nearest: number | null = null;
  for (let count = 1; count <= offer.total; count += 1) {
    const isNearer = nearest === null || Math.abs(count - wanted) < Math.abs(nearest - wanted);
    if (isNearer && canRent(count, offer)) nearest = count;
  }
  return nearest;
}
