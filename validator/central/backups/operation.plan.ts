/** Decides the next step of an operation from its row and its pod. Pure. */

import { CREATION_STATES, podStateOf } from '../market/pods/pod.state.ts';
import type { Pod } from '../platform/database/tables.ts';
import type { Operation } from './operation.ts';

/** An operation without a heartbeat for this long fails. */
export const SILENCE_MS = 120_000;

export type OperationStep =
  /** Send the operation to the node, or again if the previous answer was lost. */
  | 'send'
  /** Query the operation's progress. */
  | 'poll'
  /** Cancel the operation on the node. */
  | 'cancel'
  /** Wait: the restore was requested with a rental, and the container of the new pod has not started yet. */
  | 'wait'
  /** Fail the operation: the pod was removed. */
  | 'fail';

export function operationStep(operation: Operation, pod: Pod | undefined): OperationStep {
  if (operation.kind === 'drill') {
    if (operation.cancel_at !== null || isOwnPodBeingRemoved(operation, pod)) return 'cancel';
    return operation.state === 'IN_PROGRESS' ? 'poll' : 'send';
  }
  const isGone = pod === undefined || pod.ended_at !== null;
  const isBeingRemoved = isGone || pod.delete_requested_at !== null;
  // The node ends an operation that it has received, and reports the result.
  if (isGone || (isBeingRemoved && operation.sent_at === null)) return 'fail';
  if (operation.cancel_at !== null || isBeingRemoved) return 'cancel';
  if (operation.state === 'IN_PROGRESS') return 'poll';
  return awaitsPod(operation, pod) ? 'wait' : 'send';
}

/**
 * Returns true if the drill's pod is being removed on the drill's node. A drill needs no pod, but must not run during
 * that removal.
 */
function isOwnPodBeingRemoved({ executor_id }: Operation, pod: Pod | undefined): boolean {
  const isOnNode = pod?.executor_id === executor_id && pod.ended_at === null;
  return isOnNode && pod.delete_requested_at !== null;
}

/**
 * Returns true if the node has shown no progress for `SILENCE_MS`. The time is counted from the start of this process
 * (`startedMs`), or from the later moment at which the state of the pod allowed the operation to begin.
 */
export function isSilent(
  operation: Operation,
  pod: Pod | undefined,
  { nowMs, startedMs }: { nowMs: number; startedMs: number },
): boolean {
  if (pod !== undefined && awaitsPod(operation, pod)) return false;
  const allowedSinceMs = pod?.state === 'restoring' ? pod.updated_at : (pod?.first_running_at ?? 0);
  const sinceMs = Math.max(operation.heartbeat_at, startedMs, allowedSinceMs);
  return nowMs - sinceMs >= SILENCE_MS;
}

/** Returns true for a restore that was requested with the rental and whose pod's container has not started yet. */
function awaitsPod(operation: Operation, pod: Pod): boolean {
  if (operation.kind !== 'restore' || operation.state !== 'PENDING') return false;
  const state = podStateOf(pod.state);
  const isCreating = state !== 'restoring' && CREATION_STATES.some((each) => each === state);
  return operation.occasion === 'STARTUP' && isCreating;
}
