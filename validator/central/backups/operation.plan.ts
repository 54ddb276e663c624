/** Decides the next step of an operation from its row and its pod. Pure. */

import { CREATION_STATES, podStateOf } from '../market/pods/pod.state.ts';
import type { Pod } from '../platform/database/tables.ts';
import type { Operation } from './operation.ts';

/** An operation without a heartbeat for this long fails. */
export const SILENCE_MS = 120_000;

export type OperationStep =
  /** Send it to the node; again if the previous answer was lost. */
  | 'send'
  /** Query its progress. */
  | 'poll'
  /** Cancel it on the node. */
  | 'cancel'
  /** Wait: a restore whose new pod is not running yet. */
  | 'wait'
  /** Fail it: the pod is gone. */
  | 'fail';

export function operationStep(operation: Operation, pod: Pod | undefined): OperationStep {
  if (operation.kind === 'drill') {
    if (operation.cancel_at !== null || isOwnPodBeingRemoved(operation, pod)) return 'cancel';
    return operation.state === 'IN_PROGRESS' ? 'poll' : 'send';
  }
  const isGone = pod === undefined || pod.ended_at !== null;
  const isBeingRemoved = isGone || pod.delete_requested_at !== null;
  // An operation that the node has received ends on the node, which reports the result.
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
 * Returns true if the node has shown no progress for `SILENCE_MS`. The time starts no earlier than this process
 * (`startedMs`) and the moment at which the pod allowed the operation to begin.
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

/** Returns true for a restore that was requested with the rental and whose pod has not been created yet. */
function awaitsPod(operation: Operation, pod: Pod): boolean {
  if (operation.kind !== 'restore' || operation.state !== 'PENDING') return false;
  const state = podStateOf(pod.state);
  const isCreating = state !== 'restoring' && CREATION_STATES.some((each) => each === state);
  return operation.occasion === 'STARTUP' && isCreating;
}
