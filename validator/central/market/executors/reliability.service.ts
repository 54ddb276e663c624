/** Counts events of a node per day, and renews its score with every report of a validator. */
import type { HealthReport } from '#shared/api/central/validator-routes.ts';
import type { Db, Executor } from '../../platform/database/tables.ts';
import type { ReliabilityResponse } from './executor.schemas.ts';
import type { ExecutorEntry } from './executor.store.ts';
import {
  DAY_MS,
  dayOf,
  factorsOf,
  isReachable,
  observedSince,
  reliabilityPermille,
  WINDOW_DAYS,
} from './reliability.plan.ts';
import { addCounts, deleteDaysUntil, sumsAfter } from './reliability.store.ts';

const MINUTE_MS = 60_000;

/** Events of pods that affect the score of their node. */
export type PodOutcome = 'launches_succeeded' | 'launches_failed' | 'interruptions';

/** Columns of an executor that change with reports of validators. */
export type ObservedColumns = Partial<
  Pick<Executor, 'observed_at' | 'reliability_permille' | 'reachable_since'>
>;

/** Counts an event. Must run in the transaction of the event. The next report renews the score. */
export async function countOutcome(
  tx: Db,
  executorId: string,
  outcome: PodOutcome,
  nowMs: number,
): Promise<void> {
  await addCounts(tx, { executor_id: executorId, day: dayOf(nowMs) }, { [outcome]: 1 });
}

/**
 * Counts the time since the last report, and returns the columns of the executor's row to write with the renewed score.
 * The caller has locked the row.
 */
export async function observeReport(
  tx: Db,
  node: ExecutorEntry,
  report: HealthReport,
  nowMs: number,
): Promise<ObservedColumns> {
  const reachable = isReachable(report);
  if (reachable === null) return {};
  const today = dayOf(nowMs);
  const counts = observedSince(node, reachable, nowMs);
  if (counts !== null) await addCounts(tx, { executor_id: node.id, day: today }, counts);
  const score = reliabilityPermille(await sumsAfter(tx, node.id, today - WINDOW_DAYS));
  const reachableSince = reachable ? (node.reachable_since ?? nowMs) : null;
  return {
    observed_at: nowMs,
    // Unchanged columns are left out, because writing them would renew the node's revision.
    ...(score === node.reliability_permille ? {} : { reliability_permille: score }),
    ...(reachableSince === node.reachable_since ? {} : { reachable_since: reachableSince }),
  };
}

/** Returns the score with the figures from which it is computed. */
export async function reliabilityOf(
  db: Db,
  node: ExecutorEntry,
  nowMs: number,
): Promise<ReliabilityResponse> {
  const counts = await sumsAfter(db, node.id, dayOf(nowMs) - WINDOW_DAYS);
  const { availability, launchRate, continuity } = factorsOf(counts);
  const score = reliabilityPermille(counts);
  return {
    executor_id: node.id,
    reliability_score: score === null ? null : score / 1_000,
    window_days: WINDOW_DAYS,
    observed_minutes: Math.floor(counts.observed_ms / MINUTE_MS),
    reachable_minutes: Math.floor(counts.reachable_ms / MINUTE_MS),
    rented_minutes: Math.floor(counts.rented_ms / MINUTE_MS),
    launches_succeeded: counts.launches_succeeded,
    launches_failed: counts.launches_failed,
    interruptions: counts.interruptions,
    availability,
    launch_rate: launchRate,
    continuity,
  };
}

/** Deletes counts of days that scores no longer use. */
export async function deleteOldDays(tx: Db, nowMs: number): Promise<void> {
  await deleteDaysUntil(tx, dayOf(nowMs - WINDOW_DAYS * DAY_MS));
}
