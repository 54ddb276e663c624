/** What providers without a verified node see of machine requests: how many there are (specification, Provider portal operations, rule 3). Pure. */
import { shortGpuType } from '#shared/api/gpu-type.ts';
import type { RequestAggregate } from './portal-request.schemas.ts';

/** USD per GPU and hour; in order, each up to just below its bound. */
const BANDS = [
  { band: '<$1/h', belowUusd: 1_000_000 },
  { band: '$1-3/h', belowUusd: 3_000_000 },
  { band: '$3-10/h', belowUusd: 10_000_000 },
  { band: '$10+/h', belowUusd: Number.POSITIVE_INFINITY },
] as const;
/** Of requests that do not say how many GPUs their budget is for, or have none. */
const UNKNOWN = 'unknown';

/** So many pending requests that ask for the same. */
export type RequestGroup = {
  gpu_class: string;
  gpu_count: number | null;
  budget_uusd_per_hour: number | null;
  count: number;
};

/** In which band a budget for all GPUs together lies. */
export function bandOf({
  gpu_count: gpus,
  budget_uusd_per_hour: budget,
}: Pick<RequestGroup, 'gpu_count' | 'budget_uusd_per_hour'>): string {
  if (gpus === null || budget === null) return UNKNOWN;
  return BANDS.find(({ belowUusd }) => budget < belowUusd * gpus)?.band ?? UNKNOWN;
}

/** Classes by their short type, the most wanted first; every band, the empty ones too. */
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
