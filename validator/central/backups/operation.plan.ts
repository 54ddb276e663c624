/** What is to be done about one operation, from its row and its pod. Pure. */

import { CREATION_STATES, podStateOf } from '../market/pods/pod.state.ts';
import type { Pod } from '../platform/database/tables.ts';
import type { Operation } from './operation.store.ts';

/** Without a sign of life for this long it counts as failed (marketplace reference 1.17). */
export const SILENCE_MS = 120_000;

export type OperationStep =
  /** Send it to the node: again where the answer to the last time was lost. */
  | 'send'
  /** Ask the node where it stands. */
  | 'ask'
  /** Have the node end it. */
  | 'cancel'
  /** A restore of a pod that has not run yet. */
  | 'wait'
  /** There is no pod to do it on. */
  | 'fail';

/** The next step. */
export function operationStep(operation: Operation, pod: Pod | undefined): OperationStep {
  if (operation.table === 'backup_drills') {
    if (operation.cancel_at !== null || isGoingBeside(operation, pod)) return 'cancel';
    return operation.state === 'IN_PROGRESS' ? 'ask' : 'send';
  }
  const isGone = pod === undefined || pod.ended_at !== null;
  const isGoing = isGone || pod.delete_requested_at !== null;
  // What the node has begun, it ends with its pod, and tells how.
  if (isGone || (isGoing && operation.sent_at === null)) return 'fail';
  if (operation.cancel_at !== null || isGoing) return 'cancel';
  if (operation.state === 'IN_PROGRESS') return 'ask';
  return awaitsPod(operation, pod) ? 'wait' : 'send';
}

/** A drill is about a repository, and its pod may be gone; while that goes, its volumes are left alone. */
function isGoingBeside({ executor_id }: Operation, pod: Pod | undefined): boolean {
  const isThere = pod?.executor_id === executor_id && pod.ended_at === null;
  return isThere && pod.delete_requested_at !== null;
}

/** Whether nothing was heard of it for too long, counting from when we could have heard: this process began at `startedMs`. */
export function isSilent(
  operation: Operation,
  pod: Pod | undefined,
  { nowMs, startedMs }: { nowMs: number; startedMs: number },
): boolean {
  if (pod !== undefined && awaitsPod(operation, pod)) return false;
  const couldBegin = pod?.state === 'restoring' ? pod.updated_at : (pod?.first_running_at ?? 0);
  const sinceMs = Math.max(operation.heartbeat_at, startedMs, couldBegin);
  return nowMs - sinceMs >= SILENCE_MS;
}

function awaitsPod(operation: Operation, pod: Pod): boolean {
  if (operation.table !== 'restore_logs' || operation.state !== 'PENDING') return false;
  const state = podStateOf(pod.state);
  const isComing = state !== 'restoring' && CREATION_STATES.some((known) => known === state);
  return operation.occasion === 'STARTUP' && isComing;
}
