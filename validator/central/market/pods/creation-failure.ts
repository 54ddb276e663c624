/** Ends a launch: the pod becomes `creation_failed`, and the agent removes its remains of the pod. */
import type { EventReason } from '../../delivery/events/event.schemas.ts';
import type { Db, Pod } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import { releaseGpus } from '../executors/executor.service.ts';
import { podStateOf } from './pod.state.ts';
import { movePod } from './pod.store.ts';
import { recordTransition, type TransitionDeps } from './pod-events.ts';
import { releaseHold } from './pod-hold.ts';
import { REMOVAL_PHASE } from './pod-sync.plan.ts';

export type CreationFailure = {
  reason: EventReason;
  message: string;
  /**
   * False while the agent may have the pod: its GPUs stay reserved until the agent confirms that it does not have the
   * pod.
   */
  gpusFree: boolean;
  /**
   * True if the launch counts as failed for the node's reliability. Launches that fail because of images, programs or
   * requests of renters do not count.
   */
  isNodeFault: boolean;
};

/**
 * Releases the hold and, with `gpusFree`, the GPUs, and notifies the renter. Does nothing if the row has changed since
 * it was read.
 */
export async function endCreation(
  tx: Db,
  deps: TransitionDeps,
  pod: Pod,
  { reason, message, gpusFree, isNodeFault }: CreationFailure,
): Promise<void> {
  const nowMs = deps.clock.now();
  await lockRow(tx, 'executors', pod.executor_id);
  const change = {
    phase: REMOVAL_PHASE,
    reason_code: reason,
    message,
    delete_requested_at: nowMs,
    updated_at: nowMs,
  };
  const from = podStateOf(pod.state);
  if (!(await movePod(tx, pod.id, 'creation_failed', change, { from: [from] }))) return;
  await releaseHold(tx, pod, { actor: SYSTEM_ACTOR, nowMs });
  if (gpusFree) await releaseGpus(tx, pod.id);
  await recordTransition(tx, deps, pod, 'creation_failed', { reason, message, isNodeFault });
}
