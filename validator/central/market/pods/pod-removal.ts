/** Schedules and begins the removal of pods; the sync completes it on the node. */
import { type Clock, naiveUtc, parseIsoTime } from '#shared/runtime/clock.ts';
import { ApiError, invalidField } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { requireTerminationHours } from '../../accounts/account/account.service.ts';
import type { Database, Db, Pod } from '../../platform/database/tables.ts';
import { moneyTransaction } from '../../platform/database/transactions.ts';
import { type Actor, SYSTEM_ACTOR } from '../../platform/identity.ts';
import { clearDue, setDue } from '../../platform/schedule/due.ts';
import { firstWarningAt } from '../../platform/schedule/warnings.ts';
import { POD_STATES, REMOVAL_STATES, wirePhase } from './pod.state.ts';
import { changePod, listUnended, movePod, type PodChange } from './pod.store.ts';
import { billableUntil } from './pod-contact.ts';
import { recordPodEvent } from './pod-events.ts';
import { releaseHold } from './pod-hold.ts';
import { statusOf } from './pod-response.ts';
import { cancelGraceEnd } from './pod-stop.ts';

type Deps = { clock: Clock; random: Random };

/** Largest number of pods that one call of `removeAll` removes. Callers repeat the call until no pods remain. */
const CLEANUP_BATCH = 10_000;
const HOUR_MS = 3_600_000;
const OFFSET = /(?:Z|[+-]\d{2}:\d{2})$/;

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

/** `atMs`: the announced end, until which the pod is charged; default: now. */
export type RemovalRequest = { actor: Actor; reason: RemovalReason; atMs?: number };

/** Returns the changed row. Voids the pod's hold: a pod that never ran costs nothing. */
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
  const metered = { atMs: billableUntil(pod, Math.min(nowMs, atMs ?? nowMs)) };
  if (!(await movePod(tx, pod.id, 'deleting', change, metered))) {
    throw new ApiError('pod_state_conflict', 'The pod is already being deleted');
  }
  await releaseHold(tx, pod, { actor, nowMs });
  if (pod.removal_at !== null) await setRemovalDue(tx, pod.id, null);
  if (pod.state === 'stopped') await cancelGraceEnd(tx, pod.id);
  await recordPodEvent(tx, deps, pod, {
    subEventType: 'pod-delete.requested',
    actor,
    toStatus: 'DELETING',
    reason,
  });
  return { ...pod, ...change, state: 'deleting' };
}

/** Throws `pod_state_conflict` for a pod that is being removed. */
export async function changeUnlessRemoving(tx: Db, pod: Pod, change: PodChange): Promise<void> {
  const states = POD_STATES.filter((state) => !REMOVAL_STATES.includes(state));
  if (await changePod(tx, pod.id, states, change)) return;
  throw new ApiError('pod_state_conflict', `The pod is ${statusOf(pod)}`);
}

/**
 * Schedules the removal for `removalAt`. Null cancels the removal and clears the requested hours. Throws
 * `pod_state_conflict` for a pod that is being removed.
 */
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
  await changeUnlessRemoving(tx, pod, change);
  await recordRemovalTime(tx, deps, pod, { actor, removalAt });
  return { ...pod, ...change };
}

/**
 * Updates the schedule and records the event. Does nothing if the time is unchanged, so that no warning is repeated.
 */
export async function recordRemovalTime(
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

/** Replaces the scheduled removal and its warnings; null cancels both. */
export async function setRemovalDue(
  tx: Db,
  podId: string,
  removalAt: number | null,
): Promise<void> {
  if (removalAt === null) {
    await clearDue(tx, 'pod-removal', podId);
    await clearDue(tx, 'pod-removal-warning', podId);
    return;
  }
  await setDue(tx, 'pod-removal', podId, removalAt);
  await setDue(tx, 'pod-removal-warning', podId, firstWarningAt(removalAt));
}

/**
 * Returns epoch milliseconds. Throws 422 for text that is not a time with an offset, and 400 `ttl_invalid` for a time
 * that is not 1 to 720 hours ahead.
 */
export function parseRemovalTime(text: string, nowMs: number): number {
  const atMs = parseIsoTime(text);
  if (atMs === null || !OFFSET.test(text)) {
    throw invalidField('body.removal_scheduled_at', 'Not an ISO 8601 time with Z or an offset');
  }
  requireTerminationHours((atMs - nowMs) / HOUR_MS);
  return atMs;
}

/** Returns epoch milliseconds, `hours` after `fromMs`. Throws 400 `ttl_invalid` unless `hours` is 1 to 720. */
export function removalAfter(hours: number, fromMs: number): number {
  requireTerminationHours(hours);
  return fromMs + Math.round(hours * HOUR_MS);
}

export type PodCleanup = ReturnType<typeof createPodCleanup>;

/** Removes every pod in the market, for a marketplace on one host that shuts down. */
export function createPodCleanup(deps: {
  db: Database;
  clock: Clock;
  random: Random;
  /** Queues an immediate sync of this executor. */
  wake(executorId: string): void;
}) {
  const { db, wake } = deps;
  return {
    /** Begins the removal of every pod and returns the number of pods that may still have a container on a node. */
    async removeAll(): Promise<number> {
      const pods = await listUnended(db, CLEANUP_BATCH);
      for (const pod of pods) {
        const request = { actor: SYSTEM_ACTOR, reason: 'node_removed' } as const;
        try {
          await moneyTransaction(deps, (tx) => beginRemoval(tx, deps, pod, request));
        } catch (error) {
          // The pod is already being removed.
          if (!(error instanceof ApiError)) throw error;
        }
        wake(pod.executor_id);
      }
      return pods.length;
    },
    /** The pods that may still have a container on a node. */
    async remaining(): Promise<{ id: string; executorId: string }[]> {
      const pods = await listUnended(db, CLEANUP_BATCH);
      return pods.map(({ id, executor_id }) => ({ id, executorId: executor_id }));
    },
  };
}
