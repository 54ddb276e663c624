/** Writes what an agent said of a pod into its row: conditional moves, each with its event. */
import type { PodSpecInput, PodView } from '#shared/api/agent/pod.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { EventReason } from '../../delivery/events/event.schemas.ts';
import type { Mails } from '../../delivery/mail/mail.service.ts';
import { followPod } from '../../money/metering/usage.service.ts';
import type { Database, Db, Pod } from '../../platform/database/tables.ts';
import { lockRow, moneyTransaction } from '../../platform/database/transactions.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import { releaseGpus } from '../executors/executor.service.ts';
import { imageKeyOf } from '../executors/launch-estimate.ts';
import { createPullMeasures } from '../executors/pull-measures.ts';
import { retireTemplate } from '../templates/template-use.service.ts';
import { expectationAfter } from './launch-eta.ts';
import { podStateOf, wirePhase } from './pod.state.ts';
import { acknowledgeGeneration, changePod, endPod, isBeingCreated, movePod } from './pod.store.ts';
import {
  changeEndOf,
  changeEndPatch,
  type Previous,
  previousOf,
  refusalPatch,
  settleTemplates,
} from './pod-change.ts';
import { setFailureEnd } from './pod-dues.ts';
import { releaseHold } from './pod-hold.ts';
import { notebookFailure, notebookNews } from './pod-notebook.ts';
import { removalReasonOf } from './pod-sync.events.ts';
import {
  GONE_PHASE,
  type Observed,
  observedOf,
  REMOVAL_PHASE,
  RESTORING,
  restoringInsteadOf,
} from './pod-sync.plan.ts';
import { tellMove } from './pod-sync.tell.ts';

/** `seen_at` is written at most this often while nothing else changes. */
const SEEN_RESOLUTION_MS = 5_000;

type Failure = { reason: EventReason; message: string; gpusFree: boolean };
/** Every function ends without effect when the row has moved on meanwhile. */
export function createPodRecorder(deps: {
  db: Database;
  clock: Clock;
  random: Random;
  log: Log;
  mails: Mails;
  restoresAtStart(podId: string): Promise<boolean>;
  detachVolume(tx: Db, podId: string): Promise<void>;
}) {
  const { db, clock, log } = deps;
  const pulls = createPullMeasures(deps);

  /** While a change is on its way to the agent, its pull may be that of either image. Never rejects. */
  async function notePull(pod: Pod, { last_pull: pull, generation }: PodView): Promise<void> {
    if (pull === null) return;
    const { image } = JSON.parse(pod.spec_json) as PodSpecInput;
    const isPlain = generation === pod.generation && pod.previous_json === null;
    await pulls
      .note(pod.executor_id, isPlain ? imageKeyOf(image) : null, pull)
      .catch((error: unknown) => log.warn({ pod_id: pod.id, err: error }, 'a pull is not counted'));
  }

  async function move(tx: Db, pod: Pod, seen: Observed, view: PodView): Promise<void> {
    const from = podStateOf(pod.state);
    const nowMs = clock.now();
    const end = seen.state === 'rebooting' ? null : changeEndOf(pod, view);
    const first = seen.state === 'running' && pod.first_running_at === null;
    const change = {
      phase: seen.phase,
      reason_code: seen.reason,
      message: seen.message,
      ports_json: JSON.stringify(view.ports),
      ...seenAt(view, nowMs),
      updated_at: nowMs,
      ...(first ? { first_running_at: nowMs } : {}),
      ...expectationAfter(pod, view, nowMs),
      ...(end === null ? {} : changeEndPatch(pod, end)),
    };
    if (!(await movePod(tx, pod.id, seen.state, change, { from: [from] }))) return;
    if (end !== null) await settleTemplates(tx, pod, end, nowMs);
    const { reason, message } = seen;
    await tellMove(tx, deps, pod, seen.state, { reason, message, isUndone: end === 'undone' });
  }

  /** Its state is what it was. Whoever could not be reached while it rebooted is metered again. */
  async function stay(pod: Pod, seen: Observed, view: PodView): Promise<void> {
    const nowMs = clock.now();
    const change = {
      ...expectationAfter(pod, view, nowMs),
      phase: seen.phase,
      reason_code: seen.reason,
      message: seen.message,
      ports_json: JSON.stringify(view.ports),
      ...seenAt(view, nowMs),
    };
    if (pod.phase !== wirePhase('unknown')) {
      await changePod(db, pod.id, [seen.state], change);
      return;
    }
    await moneyTransaction(deps, async (tx) => {
      if (!(await changePod(tx, pod.id, [seen.state], change))) return;
      await followPod(tx, pod.id, seen.state, { nowMs });
    });
  }

  async function seenOf(pod: Pod, view: PodView): Promise<Observed> {
    const seen = observedOf(pod, view, clock.now());
    const mayRestore = isBeingCreated(pod) && restoringInsteadOf(pod, seen);
    return mayRestore && (await deps.restoresAtStart(pod.id)) ? RESTORING : seen;
  }

  /** The agent does not take the change: the pod is what it was, and runs as it did. */
  async function undo(pod: Pod, previous: Previous, message: string): Promise<void> {
    const from = podStateOf(pod.state);
    const nowMs = clock.now();
    const reason = 'start_failed';
    await moneyTransaction(deps, async (tx) => {
      const change = {
        ...refusalPatch(previous),
        phase: wirePhase(previous.state) ?? '',
        reason_code: reason,
        message,
        updated_at: nowMs,
      };
      if (!(await movePod(tx, pod.id, previous.state, change, { from: [from] }))) return;
      await settleTemplates(tx, pod, 'undone', nowMs);
      await tellMove(tx, deps, pod, previous.state, { reason, message, isUndone: true });
    });
  }

  /** No pod of this row: GPUs and hold go back, its agent is to drop what it has of it. */
  async function failCreation(pod: Pod, { reason, message, gpusFree }: Failure): Promise<void> {
    const nowMs = clock.now();
    await moneyTransaction(deps, async (tx) => {
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
      await tellMove(tx, deps, pod, 'creation_failed', { reason, message });
    });
  }

  return {
    async observed(pod: Pod, view: PodView): Promise<void> {
      const from = podStateOf(pod.state);
      const seen = await seenOf(pod, view);
      if (pod.acknowledged_generation < view.generation) {
        await acknowledgeGeneration(db, pod.id, view.generation);
      }
      await acknowledgeReboots(db, pod, view);
      const notebook = notebookNews(pod, view);
      if (notebook !== null) await changePod(db, pod.id, [from], notebook);
      if (seen.state === 'creation_failed') {
        const reason = seen.reason ?? 'start_failed';
        await failCreation(pod, { reason, message: seen.message, gpusFree: true });
      } else if (seen.state !== from) {
        await moneyTransaction(deps, (tx) => move(tx, pod, seen, view));
      } else if (isNews(pod, seen, view, clock.now())) {
        await stay(pod, seen, view);
      }
      // Last: what a pod is does not wait for statistics.
      await notePull(pod, view);
    },

    /** It is not sent to its node before its volume is there. */
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
        await tellMove(tx, deps, pod, 'restoring', { reason: null, message });
      });
    },

    /** The agent will not start a notebook server there. */
    async notebookRefused(pod: Pod, message: string): Promise<void> {
      await changePod(db, pod.id, [podStateOf(pod.state)], notebookFailure(message));
    },

    /** The agent will not run this spec. */
    async refused(pod: Pod, message: string): Promise<void> {
      if (isBeingCreated(pod)) {
        await failCreation(pod, { reason: 'start_failed', message, gpusFree: true });
        return;
      }
      const from = podStateOf(pod.state);
      const previous = previousOf(pod);
      if (previous !== null) return undo(pod, previous, message);
      await moneyTransaction(deps, async (tx) => {
        const change = {
          phase: '',
          reason_code: 'start_failed',
          message,
          updated_at: clock.now(),
        };
        if (!(await movePod(tx, pod.id, 'failed', change, { from: [from] }))) return;
        await tellMove(tx, deps, pod, 'failed', { reason: 'start_failed', message });
      });
    },

    /** A launch may have arrived unheard, so the GPUs stay taken until the agent denies it. */
    tooLate: (pod: Pod) =>
      failCreation(pod, {
        reason: 'start_failed',
        message: 'The node did not take the pod in time',
        gpusFree: false,
      }),

    /** Its node is lost with it; should it come back, it is to drop the pod. */
    endCreation: (pod: Pod, message: string) =>
      failCreation(pod, { reason: 'provider_fault', message, gpusFree: false }),

    /** Nothing of it is left on the node: a deletion is finished, a failed creation only settled. */
    async gone(pod: Pod): Promise<void> {
      const nowMs = clock.now();
      await moneyTransaction(deps, async (tx) => {
        await lockRow(tx, 'executors', pod.executor_id);
        await lockRow(tx, 'pods', pod.id);
        await releaseGpus(tx, pod.id);
        if (pod.state === 'creation_failed') {
          await changePod(tx, pod.id, ['creation_failed'], { phase: GONE_PHASE });
        } else if (await endPod(tx, pod.id, { ended_at: nowMs, updated_at: nowMs })) {
          await retireTemplate(tx, pod.template_id, nowMs);
          await settleTemplates(tx, pod, 'done', nowMs);
          await tellMove(tx, deps, pod, 'deleted', {
            reason: removalReasonOf(pod.reason_code),
            message: '',
          });
        }
        await deps.detachVolume(tx, pod.id);
        if (pod.state === 'creation_failed') {
          await setFailureEnd(tx, pod.id, pod.delete_requested_at ?? nowMs);
        }
      });
    },

    /** The agent lost the pod and gets it anew: its count of reboots begins at none. */
    async startedAnew(pod: Pod): Promise<void> {
      await changePod(db, pod.id, [podStateOf(pod.state)], {
        reboots_requested: 0,
        reboots_acknowledged: 0,
      });
    },
  };
}

/** When the pod was heard of, and whether it was well. */
function seenAt({ phase }: PodView, nowMs: number) {
  return { seen_at: nowMs, ...(phase === 'running' ? { healthy_at: nowMs } : {}) };
}

async function acknowledgeReboots(db: Database, pod: Pod, view: PodView): Promise<void> {
  const acknowledged = Math.min(view.reboots_requested, pod.reboots_requested);
  if (acknowledged <= pod.reboots_acknowledged) return;
  await changePod(db, pod.id, [podStateOf(pod.state)], { reboots_acknowledged: acknowledged });
}

function isNews(pod: Pod, seen: Observed, view: PodView, nowMs: number): boolean {
  return (
    pod.phase !== seen.phase ||
    pod.reason_code !== seen.reason ||
    pod.message !== seen.message ||
    pod.ports_json !== JSON.stringify(view.ports) ||
    expectationAfter(pod, view, nowMs) !== null ||
    isSeenLongAgo(pod, nowMs)
  );
}

function isSeenLongAgo({ seen_at: seenAt }: Pod, nowMs: number): boolean {
  return nowMs - (seenAt ?? 0) >= SEEN_RESOLUTION_MS;
}
