/** Writes an agent's reports about a pod into its row: conditional moves, each with its event. */

import type { PodSpecInput, PodView } from '#shared/api/agent/pod.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Mails } from '../../delivery/mail/mail.service.ts';
import { meterTransition } from '../../money/metering/usage.service.ts';
import type { Database, Db, Pod } from '../../platform/database/tables.ts';
import { lockRow, moneyTransaction } from '../../platform/database/transactions.ts';
import { setDue } from '../../platform/schedule/due.ts';
import { releaseGpus } from '../executors/executor.service.ts';
import { imageKeyOf } from '../executors/launch-estimate.ts';
import { createPullRecorder } from '../executors/pull-speed.ts';
import { retireTemplate } from '../templates/template-use.service.ts';
import { type CreationFailure, endCreation } from './creation-failure.ts';
import { expectationAfter } from './launch-eta.ts';
import { isLaunching, lateLaunch, launchFrom, launchProgress } from './launch-limit.ts';
import { podStateOf, wirePhase } from './pod.state.ts';
import { acknowledgeGeneration, changePod, endPod, isBeingCreated, movePod } from './pod.store.ts';
import { FAILED_LISTED_MS } from './pod-access.ts';
import {
  bringsVolume,
  changeOutcomeColumns,
  changeOutcomeOf,
  type Previous,
  previousOf,
  refusalColumns,
  updateTemplates,
} from './pod-change.ts';
import { recordTransition, removalReasonOf } from './pod-events.ts';
import { notebookChange, notebookFailure } from './pod-notebook.ts';
import {
  GONE_PHASE,
  type Observed,
  observedOf,
  RESTORING,
  restoringInsteadOf,
} from './pod-sync.plan.ts';
import type { SeenTimes } from './seen-times.ts';

/** Shortest time between two writes of `seen_at` while nothing else changes. */
const SEEN_RESOLUTION_MS = 5_000;

/** Creates the recorder. Its functions have no effect if the row has changed since it was read. */
export function createPodRecorder(deps: {
  db: Database;
  clock: Clock;
  random: Random;
  log: Log;
  mails: Mails;
  restoresAtStart(podId: string): Promise<boolean>;
  detachVolume(tx: Db, podId: string): Promise<void>;
  launchLimitMs: number;
  seen: SeenTimes;
}) {
  const { db, clock, log } = deps;
  const pulls = createPullRecorder(deps);

  /**
   * Records the last pull for the node's speed and the image's size. While a change is pending, the size is left out,
   * because the pull may be of the former or of the new image. Never rejects.
   */
  async function recordPull(pod: Pod, { last_pull: pull, generation }: PodView): Promise<void> {
    if (pull === null) return;
    const { image } = JSON.parse(pod.spec_json) as PodSpecInput;
    const isPlain = generation === pod.generation && pod.previous_json === null;
    await pulls
      .record(pod.executor_id, isPlain ? imageKeyOf(image) : null, pull)
      .catch((error: unknown) =>
        log.warn({ pod_id: pod.id, err: error }, 'recording an image pull failed'),
      );
  }

  /** The time of a launch begins when the preceding restore has ended. */
  function launchColumns(pod: Pod, { state }: Observed, view: PodView) {
    const at = { nowMs: clock.now(), limitMs: deps.launchLimitMs };
    const isRestored = pod.state === 'restoring' && state !== 'restoring' && isLaunching(pod);
    return isRestored ? launchFrom(at.nowMs, at.limitMs) : launchProgress(pod, view, at);
  }

  async function move(tx: Db, pod: Pod, observed: Observed, view: PodView): Promise<void> {
    const from = podStateOf(pod.state);
    const nowMs = clock.now();
    const end = observed.state === 'rebooting' ? null : changeOutcomeOf(pod, view);
    const first = observed.state === 'running' && pod.first_running_at === null;
    const hasCrashed = from === 'running' && observed.state === 'starting';
    const change = {
      phase: observed.phase,
      reason_code: observed.reason,
      message: observed.message,
      ports_json: JSON.stringify(view.ports),
      ssh_host_key: view.ssh?.host_key ?? null,
      ...contactColumns(view, nowMs),
      updated_at: nowMs,
      ...(first ? { first_running_at: nowMs } : {}),
      ...(hasCrashed ? { first_running_at: null } : {}),
      ...expectationAfter(pod, view, nowMs),
      ...launchColumns(pod, observed, view),
      ...(end === null ? {} : changeOutcomeColumns(pod, end)),
    };
    if (!(await movePod(tx, pod.id, observed.state, change, { from: [from] }))) return;
    // The limit of the launch applies again; its due work may already have run.
    if (hasCrashed) await setDue(tx, 'launch-limit', pod.id, pod.launch_until ?? nowMs);
    if (end !== null) await updateTemplates(tx, pod, end, nowMs);
    if (end === 'reverted' && bringsVolume(pod)) await deps.detachVolume(tx, pod.id);
    const { reason, message } = observed;
    await recordTransition(tx, deps, pod, observed.state, {
      reason,
      message,
      isUndone: end === 'reverted',
    });
  }

  /** Updates a pod whose state is unchanged. A rebooting pod whose node answers again is metered again. */
  async function updateInState(pod: Pod, observed: Observed, view: PodView): Promise<void> {
    const nowMs = clock.now();
    const change = {
      ...expectationAfter(pod, view, nowMs),
      ...launchColumns(pod, observed, view),
      phase: observed.phase,
      reason_code: observed.reason,
      message: observed.message,
      ports_json: JSON.stringify(view.ports),
      ssh_host_key: view.ssh?.host_key ?? null,
      ...contactColumns(view, nowMs),
    };
    if (pod.phase !== wirePhase('unknown')) {
      await changePod(db, pod.id, [observed.state], change);
      return;
    }
    await moneyTransaction(deps, async (tx) => {
      if (!(await changePod(tx, pod.id, [observed.state], change))) return;
      await meterTransition(tx, pod.id, observed.state, { nowMs });
    });
  }

  async function observe(pod: Pod, view: PodView): Promise<Observed> {
    const observed = observedOf(pod, view, clock.now());
    const mayRestore = isBeingCreated(pod) && restoringInsteadOf(pod, observed);
    return mayRestore && (await deps.restoresAtStart(pod.id)) ? RESTORING : observed;
  }

  /** Reverts a change that the agent refused: the pod keeps running with its former spec. */
  async function revertChange(pod: Pod, previous: Previous, message: string): Promise<void> {
    const from = podStateOf(pod.state);
    const nowMs = clock.now();
    const reason = 'start_failed';
    await moneyTransaction(deps, async (tx) => {
      const change = {
        ...refusalColumns(previous),
        phase: wirePhase(previous.state) ?? '',
        reason_code: reason,
        message,
        updated_at: nowMs,
      };
      if (!(await movePod(tx, pod.id, previous.state, change, { from: [from] }))) return;
      await updateTemplates(tx, pod, 'reverted', nowMs);
      if (bringsVolume(pod)) await deps.detachVolume(tx, pod.id);
      await recordTransition(tx, deps, pod, previous.state, { reason, message, isUndone: true });
    });
  }

  const fail = (pod: Pod, failure: CreationFailure) =>
    moneyTransaction(deps, (tx) => endCreation(tx, deps, pod, failure));

  return {
    async observed(pod: Pod, view: PodView): Promise<void> {
      const from = podStateOf(pod.state);
      const observed = await observe(pod, view);
      if (pod.acknowledged_generation < view.generation) {
        await acknowledgeGeneration(db, pod.id, view.generation);
      }
      await acknowledgeReboots(db, pod, view);
      const notebook = notebookChange(pod, view);
      if (notebook !== null) await changePod(db, pod.id, [from], notebook);
      if (observed.state === 'creation_failed') {
        const reason = observed.reason ?? 'start_failed';
        const { message } = observed;
        await fail(pod, { reason, message, gpusFree: true, isNodeFault: false });
      } else if (observed.state !== from) {
        await moneyTransaction(deps, (tx) => move(tx, pod, observed, view));
      } else if (
        hasChanged(pod, observed, view, clock.now()) ||
        launchColumns(pod, observed, view) !== null
      ) {
        await updateInState(pod, observed, view);
      } else if (isSeenLongAgo(pod, clock.now())) {
        const { seen_at, healthy_at = null } = contactColumns(view, clock.now());
        deps.seen.addPod({ id: pod.id, state: from, seen_at, healthy_at });
      }
      // Runs last, because the pod's state must not wait for statistics.
      await recordPull(pod, view);
    },

    /**
     * Records why the pod waits. The sync sends a pod to its node only when the pod's volume is restored on the node.
     */
    async awaitsVolume(pod: Pod, message: string): Promise<void> {
      const from = podStateOf(pod.state);
      const phase = wirePhase('restoring') ?? '';
      const change = { phase, message, seen_at: clock.now() };
      if (from !== 'pending') {
        if (pod.message !== message || isSeenLongAgo(pod, clock.now())) {
          await changePod(db, pod.id, [from], change);
        }
        return;
      }
      await moneyTransaction(deps, async (tx) => {
        if (
          !(await movePod(
            tx,
            pod.id,
            'restoring',
            { ...change, updated_at: clock.now() },
            { from: [from] },
          ))
        )
          return;
        await recordTransition(tx, deps, pod, 'restoring', { reason: null, message });
      });
    },

    async notebookRefused(pod: Pod, message: string): Promise<void> {
      await changePod(db, pod.id, [podStateOf(pod.state)], notebookFailure(message));
    },

    async refused(pod: Pod, message: string): Promise<void> {
      if (isBeingCreated(pod)) {
        // A renter can cause the node's refusal, for example with an image that the provider does not allow.
        await fail(pod, { reason: 'start_failed', message, gpusFree: true, isNodeFault: false });
        return;
      }
      const from = podStateOf(pod.state);
      const previous = previousOf(pod);
      if (previous !== null) return revertChange(pod, previous, message);
      await moneyTransaction(deps, async (tx) => {
        const change = {
          phase: '',
          reason_code: 'start_failed',
          message,
          updated_at: clock.now(),
        };
        if (!(await movePod(tx, pod.id, 'failed', change, { from: [from] }))) return;
        await recordTransition(tx, deps, pod, 'failed', { reason: 'start_failed', message });
      });
    },

    /** Fails a launch that exceeded its limit. The agent has answered in this pass, so the GPUs are released. */
    launchTimedOut: (pod: Pod) => fail(pod, lateLaunch(pod, clock.now())),

    /** Fails the creation of a pod whose node is lost. If the node answers again, it removes the pod. */
    failCreation: (pod: Pod, message: string) =>
      fail(pod, { reason: 'provider_fault', message, gpusFree: false, isNodeFault: true }),

    /** Records that the node has removed the pod: ends a deletion, or schedules the end of a failed creation. */
    async removed(pod: Pod): Promise<void> {
      const nowMs = clock.now();
      await moneyTransaction(deps, async (tx) => {
        await lockRow(tx, 'executors', pod.executor_id);
        await lockRow(tx, 'pods', pod.id);
        await releaseGpus(tx, pod.id);
        if (pod.state === 'creation_failed') {
          await changePod(tx, pod.id, ['creation_failed'], { phase: GONE_PHASE });
        } else if (await endPod(tx, pod.id, { ended_at: nowMs, updated_at: nowMs })) {
          await retireTemplate(tx, pod.template_id, nowMs);
          await updateTemplates(tx, pod, 'applied', nowMs);
          await recordTransition(tx, deps, pod, 'deleted', {
            reason: removalReasonOf(pod.reason_code),
            message: '',
          });
        }
        await deps.detachVolume(tx, pod.id);
        if (pod.state === 'creation_failed') {
          const failedAtMs = pod.delete_requested_at ?? nowMs;
          await setDue(tx, 'pod-failure-end', pod.id, failedAtMs + FAILED_LISTED_MS);
        }
      });
    },

    /** Resets the count of reboots. An agent that lost the pod and receives it again counts from zero. */
    async resetReboots(pod: Pod): Promise<void> {
      await changePod(db, pod.id, [podStateOf(pod.state)], {
        reboots_requested: 0,
        reboots_acknowledged: 0,
      });
    },
  };
}

function contactColumns(
  { phase }: PodView,
  nowMs: number,
): { seen_at: number; healthy_at?: number } {
  return { seen_at: nowMs, ...(phase === 'running' ? { healthy_at: nowMs } : {}) };
}

async function acknowledgeReboots(db: Database, pod: Pod, view: PodView): Promise<void> {
  const acknowledged = Math.min(view.reboots_requested, pod.reboots_requested);
  if (acknowledged <= pod.reboots_acknowledged) return;
  await changePod(db, pod.id, [podStateOf(pod.state)], { reboots_acknowledged: acknowledged });
}

function hasChanged(pod: Pod, observed: Observed, view: PodView, nowMs: number): boolean {
  return (
    pod.phase !== observed.phase ||
    pod.reason_code !== observed.reason ||
    pod.message !== observed.message ||
    pod.ports_json !== JSON.stringify(view.ports) ||
    pod.ssh_host_key !== (view.ssh?.host_key ?? null) ||
    expectationAfter(pod, view, nowMs) !== null
  );
}

function isSeenLongAgo({ seen_at: seenAt }: Pod, nowMs: number): boolean {
  return nowMs - (seenAt ?? 0) >= SEEN_RESOLUTION_MS;
}
