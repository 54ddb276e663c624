/**
 * Counts pending machine requests by GPU class and budget. Providers without a verified node may read only these
 * counts. Pure.
 */
import { shortGpuType } from '#shared/api/gpu-type.ts';
import type { RequestAggregate } from './machine-request.schemas.ts';

/** Bands of USD per GPU and hour in ascending order; upper bounds are exclusive. */
const BANDS = [
  { band: '<$1/h', belowUusd: 1_000_000 },
  { band: '$1-3/h', belowUusd: 3_000_000 },
  { band: '$3-10/h', belowUusd: 10_000_000 },
  { band: '$10+/h', belowUusd: Number.POSITIVE_INFINITY },
] as const;
/** Band of requests without a budget or a GPU count. */
const UNKNOWN = 'unknown';

/** Number of pending requests for the same machine. */
export type RequestGroup = {
  gpu_class: string;
  gpu_count: number | null;
  budget_uusd_per_hour: number | null;
  count: number;
};

/** Returns the band of a budget for all GPUs together. */
export function bandOf({
  gpu_count: gpus,
  budget_uusd_per_hour: budget,
}: Pick<RequestGroup, 'gpu_count' | 'budget_uusd_per_hour'>): string {
  if (gpus === null || budget === null) return UNKNOWN;
  return BANDS.find(({ belowUusd }) => budget < belowUusd * gpus)?.band ?? UNKNOWN;
}

/** Groups by short GPU type, largest first, and by band, including empty bands. */
export function aggregateOf(groups: readonly RequestGroup[]): RequestAggregate {
  const byClass = countBy(groups, ({ gpu_class }) => shortGpuType(gpu_class));
  const byBand = countBy(groups, bandOf);
  return {
    tier: 'aggregate',
    open_requests: groups.reduce((sum, { count }) => sum + count, 0),
    by_gpu_class: [...byClass]
      .map(([gpu_class, count]) => ({ gpu_class, count }))
      .sort((a, b) => b.count - a.count || (a.gpu_class < b.gpu_class ? -1 : 1)),
    by_hourly_budget_band: [...BANDS.map(({ band }) => band), UNKNOWN].map((band) => ({
      band,
      count: byBand.get(band) ?? 0,
    })),
  };
}

function countBy(
  groups: readonly RequestGroup[],
  nameOf: (group: RequestGroup) => string,
): Map<string, number> {
  const counts = new Map<string, number>();
  for (const group of groups) {
    const name = nameOf(group);
    counts.set(name, (counts.get(name) ?? 0) + group.count);
  }
  return counts;
}
