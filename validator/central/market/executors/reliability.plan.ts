/**
 * Reliability of a node over 30 days, from checks and rentals:
 *
 *     score = availability · launch rate · continuity
 *     availability = reachable time / observed time
 *     launch rate  = (succeeded + 2) / (succeeded + failed + 2)
 *     continuity   = (rented days + 7) / (rented days + 7 + interruptions)
 *
 * The constants limit the effect of single events on a node with a short history. Pure.
 */
import type { HealthReport } from '#shared/api/central/validator-routes.ts';
import { parseIsoTime } from '#shared/runtime/clock.ts';
import type { NodeDaysTable } from '../../platform/database/tables/executors.ts';
import type { ExecutorEntry } from './executor.store.ts';
import { noticeOf } from './notice-period.ts';

export const WINDOW_DAYS = 30;
export const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
/** Observed time below which a node has no score. */
export const LEAST_OBSERVED_MS = DAY_MS;
/** Longest time between two reports that counts as observed, because the validator may have been down. */
const LONGEST_GAP_MS = 2 * 3_600_000;
const PRIOR_LAUNCHES = 2;
const PRIOR_DAYS = 7;
const PERMILLE = 1_000;

export type NodeCounts = Omit<NodeDaysTable, 'executor_id' | 'day'>;

export const NO_COUNTS: NodeCounts = {
  observed_ms: 0,
  reachable_ms: 0,
  rented_ms: 0,
  launches_succeeded: 0,
  launches_failed: 0,
  interruptions: 0,
};

export function dayOf(atMs: number): number {
  return Math.floor(atMs / DAY_MS);
}

/** The factors of the score, each 0 to 1. Availability is null while nothing was observed. */
export function factorsOf(counts: NodeCounts) {
  const { observed_ms: observed, launches_succeeded: succeeded, interruptions } = counts;
  const rentedDays = counts.rented_ms / DAY_MS + PRIOR_DAYS;
  return {
    availability: observed === 0 ? null : counts.reachable_ms / observed,
    launchRate:
      (succeeded + PRIOR_LAUNCHES) / (succeeded + counts.launches_failed + PRIOR_LAUNCHES),
    continuity: rentedDays / (rentedDays + interruptions),
  };
}

/** Score in thousandths, rounded down; null if the node was observed for less than a day. */
export function reliabilityPermille(counts: NodeCounts): number | null {
  const { availability, launchRate, continuity } = factorsOf(counts);
  if (availability === null || counts.observed_ms < LEAST_OBSERVED_MS) return null;
  return Math.floor(availability * launchRate * continuity * PERMILLE);
}

/**
 * Returns false if the report shows that the agent did not answer, and null if the report does not show whether it
 * answered.
 */
export function isReachable({ inventory, verdict }: HealthReport): boolean | null {
  if (inventory !== null) return true;
  return verdict === 'failed' ? false : null;
}

type Observed = Pick<
  ExecutorEntry,
  'observed_at' | 'first_verified_at' | 'slots_free' | 'slots_total' | 'notice_json'
>;

/**
 * Time since the last report, which counts as reachable or unreachable according to the present report. Null if the
 * node never passed, has no earlier report, or is in announced maintenance.
 */
export function observedSince(
  node: Observed,
  reachable: boolean,
  nowMs: number,
): Partial<NodeCounts> | null {
  const { observed_at: sinceMs } = node;
  const isCounted = node.first_verified_at !== null && sinceMs !== null;
  if (!isCounted || isInMaintenance(node, nowMs)) return null;
  const gapMs = Math.min(Math.max(0, nowMs - sinceMs), LONGEST_GAP_MS);
  return {
    observed_ms: gapMs,
    reachable_ms: reachable ? gapMs : 0,
    rented_ms: reachable && node.slots_free < node.slots_total ? gapMs : 0,
  };
}

function isInMaintenance(node: Observed, nowMs: number): boolean {
  const notice = noticeOf(node);
  if (notice === null || notice.period_in_minute === null) return false;
  const startMs = parseIsoTime(notice.starting_at) ?? Number.POSITIVE_INFINITY;
  return nowMs >= startMs && nowMs <= startMs + notice.period_in_minute * MINUTE_MS;
}
