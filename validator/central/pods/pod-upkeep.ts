/** What falls due by time alone: scheduled removals, warnings of them, and failed creations that were shown long enough. */
import { type Clock, naiveUtc } from '#shared/clock.ts';
import { ApiError } from '#shared/errors.ts';
import type { Random } from '#shared/random.ts';
import { SYSTEM_ACTOR } from '../auth/identity.ts';
import type { Database, Db, Pod } from '../db/tables.ts';
import { recordEvent } from '../events/event.service.ts';
import { statusOf } from './pod.row.ts';
import { POD_STATES } from './pod.state.ts';
import { changePod, endPod } from './pod.store.ts';
import { isAnyDue, listSettledFailures, takeDue } from './pod-due.store.ts';
import { beginRemoval } from './pod-removal.ts';
import { dueWarning, minutesLeft, nextWarningAt } from './removal-warnings.ts';

/** How long a failed creation stays in the list (contract 5.1). */
export const FAILED_LISTED_MS = 180_000;
/** Taken per look; the rest comes with the next one. */
const BATCH = 100;

export type UpkeepDeps = { db: Database; clock: Clock; random: Random };

/**
 * Begins every removal whose time has come, those of a downtime included; on which executors. Pods that another
 * process is just taking are left to it.
 */
export async function removeDuePods(deps: UpkeepDeps, nowMs: number): Promise<string[]> {
  const executorIds: string[] = [];
  const request = { actor: SYSTEM_ACTOR, reason: 'scheduled_termination' } as const;
  // Most of the time nothing is due: no transaction then.
  if (!(await isAnyDue(deps.db, 'removal_at', nowMs))) return [];
  await deps.db.transaction().execute(async (tx) => {
    for (const pod of await takeDue(tx, 'removal_at', { nowMs, limit: BATCH })) {
      try {
        await beginRemoval(tx, deps, pod, request);
        executorIds.push(pod.executor_id);
      } catch (error) {
        // It is going already.
        if (!(error instanceof ApiError)) throw error;
      }
    }
  });
  return executorIds;
}

/** Warns of every removal that came near, once for each step; those that another process is just taking are left to it. */
export async function warnOfRemovals(deps: UpkeepDeps, nowMs: number): Promise<void> {
  if (!(await isAnyDue(deps.db, 'removal_warning_at', nowMs))) return;
  await deps.db.transaction().execute(async (tx) => {
    const due = await takeDue(tx, 'removal_warning_at', { nowMs, limit: BATCH });
    for (const pod of due) await warn(tx, deps, pod, nowMs);
  });
}

/** The event and the next warning's time are stored together: neither is without the other. */
async function warn(tx: Db, deps: UpkeepDeps, pod: Pod, nowMs: number): Promise<void> {
  const { removal_at: removalAt } = pod;
  const next = removalAt === null ? null : nextWarningAt(removalAt, nowMs);
  if (!(await changePod(tx, pod.id, POD_STATES, { removal_warning_at: next }))) return;
  if (removalAt === null || dueWarning(removalAt, nowMs) === null) return;
  await recordEvent(tx, deps, {
    accountId: pod.account_id,
    podId: pod.id,
    eventType: 'pod-lifecycle',
    subEventType: 'pod-lifecycle.status',
    actor: SYSTEM_ACTOR,
    fromStatus: statusOf(pod),
    toStatus: statusOf(pod),
    reason: 'scheduled_termination',
    payload: {
      pod_name: pod.pod_name,
      node: pod.executor_id,
      detail: 'removal_warning',
      minutes_left: minutesLeft(removalAt, nowMs),
      removal_scheduled_at: naiveUtc(removalAt),
    },
  });
}

/** Ends failed creations of which nothing is left on the node. */
export async function endOldFailures({ db }: UpkeepDeps, nowMs: number): Promise<void> {
  for (const id of await listSettledFailures(db, nowMs - FAILED_LISTED_MS, BATCH)) {
    await endPod(db, id, { ended_at: nowMs, updated_at: nowMs });
  }
}
