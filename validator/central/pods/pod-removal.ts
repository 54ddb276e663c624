/** How a removal is scheduled and begins, whoever wants it; the sync finishes it on the node. */
import { type Clock, naiveUtc } from '#shared/clock.ts';
import { ApiError } from '#shared/errors.ts';
import type { Random } from '#shared/random.ts';
import type { Actor } from '../auth/identity.ts';
import type { Db, Pod } from '../db/tables.ts';
import { recordEvent } from '../events/event.service.ts';
import { statusOf } from './pod.row.ts';
import { POD_STATES, REMOVAL_STATES, wirePhase } from './pod.state.ts';
import { changePod, movePod, type PodChange } from './pod.store.ts';
import { releaseHold } from './pod-hold.ts';
import { removalChange } from './removal-warnings.ts';

type Deps = { clock: Clock; random: Random };

export type RemovalReason = 'user_initiated' | 'scheduled_termination';

/** The row as it is now. The hold ends here: nothing is charged for a pod whose deletion was accepted. */
export async function beginRemoval(
  tx: Db,
  deps: Deps,
  pod: Pod,
  { actor, reason }: { actor: Actor; reason: RemovalReason },
): Promise<Pod> {
  const nowMs = deps.clock.now();
  const change = {
    phase: wirePhase('deleting') ?? '',
    reason_code: reason,
    delete_requested_at: nowMs,
    updated_at: nowMs,
  };
  if (!(await movePod(tx, pod.id, 'deleting', change))) {
    throw new ApiError('pod_state_conflict', 'The pod is being deleted already');
  }
  await releaseHold(tx, pod, { actor, nowMs });
  await recordEvent(tx, deps, {
    accountId: pod.account_id,
    podId: pod.id,
    eventType: 'pod-delete',
    subEventType: 'pod-delete.requested',
    actor,
    fromStatus: statusOf(pod),
    toStatus: 'DELETING',
    reason,
    payload: { pod_name: pod.pod_name, node: pod.executor_id },
  });
  return { ...pod, ...change, state: 'deleting' };
}

/** Throws `pod_state_conflict` for a pod that is going already. */
export async function changeUnlessGoing(tx: Db, pod: Pod, change: PodChange): Promise<void> {
  const states = POD_STATES.filter((state) => !REMOVAL_STATES.includes(state));
  if (await changePod(tx, pod.id, states, change)) return;
  throw new ApiError('pod_state_conflict', `The pod is ${statusOf(pod)}`);
}

/** Schedules the removal for `removalAt`, or for never, whatever hours were asked for before. Throws `pod_state_conflict` for a pod that is going already. */
export async function scheduleRemoval(
  tx: Db,
  deps: Deps,
  pod: Pod,
  { actor, removalAt }: { actor: Actor; removalAt: number | null },
): Promise<Pod> {
  const change = {
    ...removalChange(pod, removalAt),
    ...(removalAt === null ? { termination_hours: null } : {}),
    updated_at: deps.clock.now(),
  };
  await changeUnlessGoing(tx, pod, change);
  await recordSchedule(tx, deps, pod, { actor, removalAt });
  return { ...pod, ...change };
}

/** Tells who set the time at which the pod is to end; nothing where that is what it was. */
export async function recordSchedule(
  tx: Db,
  deps: Deps,
  pod: Pod,
  { actor, removalAt }: { actor: Actor; removalAt: number | null },
): Promise<void> {
  if (removalAt === pod.removal_at) return;
  await recordEvent(tx, deps, {
    accountId: pod.account_id,
    podId: pod.id,
    eventType: 'pod-lifecycle',
    subEventType: 'pod-lifecycle.requested',
    actor,
    fromStatus: statusOf(pod),
    toStatus: statusOf(pod),
    reason: 'user_initiated',
    payload: {
      pod_name: pod.pod_name,
      node: pod.executor_id,
      detail: removalAt === null ? 'removal_cancelled' : 'removal_scheduled',
      removal_scheduled_at: removalAt === null ? null : naiveUtc(removalAt),
    },
  });
}
