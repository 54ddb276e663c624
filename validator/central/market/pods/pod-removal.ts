/** How a removal is scheduled and begins, whoever wants it; the sync finishes it on the node. */

import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Db, Pod } from '../../platform/database/tables.ts';
import type { Actor } from '../../platform/identity.ts';
import { statusOf } from './pod.row.ts';
import { POD_STATES, REMOVAL_STATES, wirePhase } from './pod.state.ts';
import { changePod, movePod, type PodChange } from './pod.store.ts';
import { usedUntil } from './pod-contact.ts';
import { clearGraceEnd, setRemovalDue } from './pod-dues.ts';
import { recordPodEvent } from './pod-event.ts';
import { releaseHold } from './pod-hold.ts';

type Deps = { clock: Clock; random: Random };

export const REMOVAL_REASONS = [
  'user_initiated',
  'scheduled_termination',
  'balance_exhausted',
  'max_spend_reached',
  'idle_shutdown',
  'provider_notice',
  'node_removed',
] as const;
export type RemovalReason = (typeof REMOVAL_REASONS)[number];

/** `atMs`: what it is used until, where that was said beforehand. */
export type RemovalRequest = { actor: Actor; reason: RemovalReason; atMs?: number };

/** The row as it is now. `atMs`: what it is used until, where that was said beforehand. The hold ends here: nothing is charged for a pod whose deletion was accepted. */
export async function beginRemoval(
  tx: Db,
  deps: Deps,
  pod: Pod,
  { actor, reason, atMs }: RemovalRequest,
): Promise<Pod> {
  const nowMs = deps.clock.now();
  const change = {
    phase: wirePhase('deleting') ?? '',
    reason_code: reason,
    delete_requested_at: nowMs,
    ...(atMs === undefined ? {} : { removal_at: Math.min(atMs, pod.removal_at ?? atMs) }),
    updated_at: nowMs,
  };
  const metered = { atMs: usedUntil(pod, Math.min(nowMs, atMs ?? nowMs)) };
  if (!(await movePod(tx, pod.id, 'deleting', change, metered))) {
    throw new ApiError('pod_state_conflict', 'The pod is being deleted already');
  }
  await releaseHold(tx, pod, { actor, nowMs });
  if (pod.removal_at !== null) await setRemovalDue(tx, pod.id, null);
  if (pod.state === 'stopped') await clearGraceEnd(tx, pod.id);
  await recordPodEvent(tx, deps, pod, {
    subEventType: 'pod-delete.requested',
    actor,
    ...{ toStatus: 'DELETING', reason },
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
    removal_at: removalAt,
    ...(removalAt === null ? { termination_hours: null } : {}),
    updated_at: deps.clock.now(),
  };
  await changeUnlessGoing(tx, pod, change);
  await recordSchedule(tx, deps, pod, { actor, removalAt });
  return { ...pod, ...change };
}

/** Puts the time at which the pod is to end on the schedule and tells who set it; nothing where that is what it was, so that no warning is repeated. */
export async function recordSchedule(
  tx: Db,
  deps: Deps,
  pod: Pod,
  { actor, removalAt }: { actor: Actor; removalAt: number | null },
): Promise<void> {
  if (removalAt === pod.removal_at) return;
  await setRemovalDue(tx, pod.id, removalAt);
  await recordPodEvent(tx, deps, pod, {
    subEventType: 'pod-lifecycle.requested',
    actor,
    reason: 'user_initiated',
    facts: {
      detail: removalAt === null ? 'removal_cancelled' : 'removal_scheduled',
      removal_scheduled_at: removalAt === null ? null : naiveUtc(removalAt),
    },
  });
}
