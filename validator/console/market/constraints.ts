/** The constraints that the API applies to nodes: their names for people, and the relaxed value of a failed one. Pure. */
import type { RentBySpecResponse } from '../api/api.gen.ts';
import { formatUsd, wordsOf } from '../parts/format.ts';

export type Funnel = NonNullable<RentBySpecResponse['funnel']>;
export type Nearest = NonNullable<RentBySpecResponse['nearest']>;
type Value = Nearest[number]['offered'];

/** Why no node meets a request. */
export type Explanation = { funnel: Funnel; nearest: Nearest };

const NAMES: Record<string, string> = {
  offered: 'Free nodes',
  rentable: 'Free nodes',
  price_lte: 'Highest price per GPU and hour',
  max_price_per_gpu_hour: 'Highest price per GPU and hour',
  price_per_hour_lte: 'Highest price of a node per hour',
  gpu_count_gte: 'Free GPUs',
  gpu_count: 'GPUs',
  gpu_type: 'GPU type',
  min_vram_gb: 'Memory of each GPU (GB)',
  min_cpus: 'Processors',
  min_ram_gb: 'Memory (GB)',
  min_disk_gb: 'Free disk (GB)',
  min_reliability: 'Reliability',
  min_download_mbps: 'Download speed (Mbit/s)',
  max_distance_mile: 'Distance (miles)',
  max_check_age_minutes: 'Age of the last check (minutes)',
  bookmarked: 'Bookmarked nodes only',
};

export function nameOfConstraint(constraint: string): string {
  return NAMES[constraint] ?? wordsOf(constraint);
}

export function textOfValue(constraint: string, value: Value): string {
  if (typeof value === 'number' && constraint.includes('price')) return formatUsd(value);
  if (value === true) return 'yes';
  return value === false ? 'no' : String(value);
}

/**
 * Value with which the request accepts the nearest node; the empty text removes the constraint, because the node does
 * not report the value.
 */
export function relaxedValue({ offered }: Pick<Nearest[number], 'offered'>): Value {
  return offered === 'unknown' ? '' : offered;
}

/** Reads the explanation of a refused rental from the details of its error; null if the error has none. */
export function explanationIn(
  details: Readonly<Record<string, unknown>> | undefined,
): Explanation | null {
  const funnel = details?.['funnel'];
  const nearest = details?.['nearest'];
  if (!Array.isArray(funnel) || !Array.isArray(nearest)) return null;
  return { funnel: funnel.filter(isStep), nearest: nearest.filter(isNearest) };
}

function isStep(entry: unknown): entry is Funnel[number] {
  return hasMembers(entry, { constraint: 'string', remaining: 'number' });
}

function isNearest(entry: unknown): entry is Nearest[number] {
  return hasMembers(entry, { constraint: 'string', executor_id: 'string' });
}

function hasMembers(entry: unknown, types: Record<string, string>): boolean {
  if (typeof entry !== 'object' || entry === null) return false;
  const members: Record<string, unknown> = { ...entry };
  return Object.entries(types).every(([name, type]) => typeof members[name] === type);
}

/** Number of nodes that meet all constraints. */
export function totalOf(funnel: Funnel): number {
  return funnel.at(-1)?.remaining ?? 0;
}
