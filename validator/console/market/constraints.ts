/** The constraints that the API applies to nodes: their names for people, and the relaxed value of a failed one. Pure. */
import type { RentBySpecResponse } from '../api/api.gen.ts';
import { formatUsd, wordsOf } from '../parts/format.ts';
import { NODE_FIELDS } from './node-fields.ts';

export type Funnel = NonNullable<RentBySpecResponse['funnel']>;
export type Nearest = NonNullable<RentBySpecResponse['nearest']>;
type Value = Nearest[number]['offered'];

/** Why no node meets a request. */
export type Explanation = { funnel: Funnel; nearest: Nearest };

/** Steps of the funnel, and constraints without a field of these forms: label, and unit if there is one. */
const OTHERS: Readonly<Record<string, Named>> = {
  offered: { label: 'Free nodes' },
  rentable: { label: 'Free nodes' },
  gpu_count: { label: 'GPUs' },
  min_download_mbps: { label: 'Download speed, at least', unit: 'Mbit/s' },
};
const CONSTRAINTS: Readonly<Record<string, Named>> = { ...NODE_FIELDS, ...OTHERS };

type Named = { label: string; unit?: string };

/** Returns the label of the constraint's field. */
export function nameOfConstraint(constraint: string): string {
  return CONSTRAINTS[constraint]?.label ?? wordsOf(constraint);
}

export function textOfValue(constraint: string, value: Value): string {
  if (typeof value === 'number' && constraint.includes('price')) return formatUsd(value);
  if (value === true) return 'yes';
  if (value === false) return 'no';
  const unit = typeof value === 'number' ? CONSTRAINTS[constraint]?.unit : undefined;
  return unit === undefined ? String(value) : `${value} ${unit}`;
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
