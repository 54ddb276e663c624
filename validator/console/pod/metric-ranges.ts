/** Ranges of the charts of a pod, and the request for each. Pure. */

export const METRIC_RANGES = [
  { key: '15m', label: 'Last 15 minutes', ms: 900_000, resolution: '10' },
  { key: '3h', label: 'Last 3 hours', ms: 10_800_000, resolution: '60' },
  { key: '24h', label: 'Last 24 hours', ms: 86_400_000, resolution: '600' },
  { key: '7d', label: 'Last 7 days', ms: 604_800_000, resolution: '600' },
  { key: '30d', label: 'Last 30 days', ms: 2_592_000_000, resolution: '600' },
] as const;

export type MetricRange = (typeof METRIC_RANGES)[number];

/** Returns the range with the key, else the shortest. */
export function rangeOf(key: string): MetricRange {
  return METRIC_RANGES.find((range) => range.key === key) ?? METRIC_RANGES[0];
}

/** Time between two reads: an interval of the range, at least 10 seconds and at most a minute. */
export function refetchMsOf({ resolution }: MetricRange): number {
  return Math.min(Number(resolution) * 1_000, 60_000);
}

/**
 * Start of the range in milliseconds since the epoch, rounded down to an interval, so that requests within an interval
 * are equal.
 */
export function startOf({ ms, resolution }: MetricRange, nowMs: number): number {
  const stepMs = Number(resolution) * 1_000;
  return Math.floor(nowMs / stepMs) * stepMs - ms + stepMs;
}
