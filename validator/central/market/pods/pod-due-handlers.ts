/** Due work of pods: scheduled removals and their warnings, limits of launches, and the end of failed creations. */
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Mails } from '../../delivery/mail/mail.service.ts';
import type { Db, Pod } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import type { DueHandlers } from '../../platform/schedule/schedule.ts';
import { dueWarning, minutesLeft, nextWarningAt } from '../../platform/schedule/warnings.ts';
import { findExecutor } from '../executors/executor.service.ts';
import { endCreation } from './creation-failure.ts';
import { isLaunching, launchFrom, SILENT_LAUNCH } from './launch-limit.ts';
import { CREATION_STATES } from './pod.state.ts';
import { changePod, endPod, findPod } from './pod.store.ts';
import { CONTACT_WAIT_MS, deferUntilContact } from './pod-contact.ts';
import { recordPodEvent, SYSTEM_EVENT } from './pod-events.ts';
import { mailRemoval } from './pod-mails.ts';
import { beginRemoval } from './pod-removal.ts';
import { GONE_PHASE } from './pod-sync.plan.ts';

export type UpkeepDeps = {
  clock: Clock;
  random: Random;
  mails: Mails;
  /** Queues an immediate sync of this executor. */
  wake(executorId: string): void;
  launchLimitMs: number;
};

export function podDueHandlers(deps: UpkeepDeps) {
  const lock = (tx: Db, podId: string) => lockRow(tx, 'pods', podId);
  return {
    'pod-removal': {
      lock,
      async run(tx, { subject, dueAtMs, nowMs }) {
        const pod = await keptPod(tx, subject);
        if (pod === undefined) return undefined;
        const atMs = pod.removal_at ?? dueAtMs;
        const againAtMs = deferUntilContact([pod], { plannedMs: atMs, dueAtMs, nowMs });
        if (againAtMs !== null) return { againAtMs, after: () => deps.wake(pod.executor_id) };
        const reason = 'scheduled_termination';
        await beginRemoval(tx, deps, pod, { actor: SYSTEM_ACTOR, reason, atMs });
        return { after: () => deps.wake(pod.executor_id) };
      },
    },
    'pod-removal-warning': {
      lock,
      async run(tx, { subject, nowMs }) {
        const pod = await keptPod(tx, subject);
        const { removal_at: removalAt = null } = pod ?? {};
        if (pod === undefined || removalAt === null) return undefined;
        if (dueWarning(removalAt, nowMs) !== null) {
          await mailRemoval(tx, deps.mails, pod, { removalAt, nowMs });
          await recordPodEvent(tx, deps, pod, {
            ...SYSTEM_EVENT,
            reason: 'scheduled_termination',
            facts: {
              detail: 'removal_warning',
              minutes_left: minutesLeft(removalAt, nowMs),
              removal_scheduled_at: naiveUtc(removalAt),
            },
          });
        }
        const next = nextWarningAt(removalAt, nowMs);
        return next === null ? undefined : { againAtMs: next };
      },
    },
    'launch-limit': {
      lock: lockWithNode,
      async run(tx, { subject, dueAtMs, nowMs }) {
        const pod = await findPod(tx, subject);
        if (pod === undefined || !isLaunching(pod)) return undefined;
        const { launch_until: untilMs } = pod;
        if (untilMs === null) {
          await changePod(tx, subject, CREATION_STATES, launchFrom(nowMs, deps.launchLimitMs));
          return { againAtMs: nowMs + deps.launchLimitMs };
        }
        const isRestoring = pod.state === 'restoring';
        if (isRestoring && !(await isSilent(tx, pod, nowMs - deps.launchLimitMs))) {
          const againAtMs = nowMs + deps.launchLimitMs;
          await changePod(tx, subject, ['restoring'], { launch_until: againAtMs });
          return { againAtMs };
        }
        if (!isRestoring && nowMs < untilMs) return { againAtMs: untilMs };
        const after = () => deps.wake(pod.executor_id);
        // If the node answers, the next pass ends the launch or finds that the pod runs.
        if (dueAtMs <= untilMs) return { againAtMs: nowMs + CONTACT_WAIT_MS, after };
        await endCreation(tx, deps, pod, SILENT_LAUNCH);
        return { after };
      },
    },
    'pod-failure-end': {
      lock,
      async run(tx, { subject, nowMs }) {
        const pod = await findPod(tx, subject);
        // The renter may have deleted the pod in the meantime.
        if (pod?.state !== 'creation_failed' || pod.phase !== GONE_PHASE) return undefined;
        await endPod(tx, subject, { ended_at: nowMs, updated_at: nowMs });
        return undefined;
      },
    },
  } satisfies DueHandlers;
}

/** Returns true if the pod's node has not answered since `sinceMs`. */
async function isSilent(tx: Db, pod: Pod, sinceMs: number): Promise<boolean> {
  const node = await findExecutor(tx, pod.executor_id);
  return (node?.last_seen_at ?? pod.created_at) <= sinceMs;
}

/** Locks the node and the pod, in the order that `lockRow` requires. */
async function lockWithNode(tx: Db, podId: string): Promise<void> {
  const pod = await findPod(tx, podId);
  if (pod !== undefined) await lockRow(tx, 'executors', pod.executor_id);
  await lockRow(tx, 'pods', podId);
}

async function keptPod(tx: Db, id: string): Promise<Pod | undefined> {
  const pod = await findPod(tx, id);
  return pod?.ended_at === null && pod.delete_requested_at === null ? pod : undefined;
}
