/** What falls due by time alone: scheduled removals, and failed creations that were shown long enough. */
import type { Clock } from '#shared/clock.ts';
import { ApiError } from '#shared/errors.ts';
import type { Random } from '#shared/random.ts';
import { SYSTEM_ACTOR } from '../auth/identity.ts';
import type { Database } from '../db/tables.ts';
import { endPod, listDueRemovals, listSettledFailures, takeDueRemovals } from './pod.store.ts';
import { beginRemoval } from './pod-removal.ts';

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
  if ((await listDueRemovals(deps.db, nowMs, 1)).length === 0) return [];
  await deps.db.transaction().execute(async (tx) => {
    for (const pod of await takeDueRemovals(tx, nowMs, BATCH)) {
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

/** Ends failed creations of which nothing is left on the node. */
export async function endOldFailures({ db }: UpkeepDeps, nowMs: number): Promise<void> {
  for (const pod of await listSettledFailures(db, nowMs - FAILED_LISTED_MS, BATCH)) {
    await endPod(db, pod.id, { ended_at: nowMs, updated_at: nowMs });
  }
}
