/** Events of pods, recorded with the pod's name, node and status, and the mail that a failure causes. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import {
  EVENT_REASONS,
  type EventReason,
  type EventType,
  type SubEventType,
} from '../../delivery/events/event.schemas.ts';
import {
  lastRequestId,
  type RecordedEvent,
  recordEvent,
} from '../../delivery/events/event.service.ts';
import type { Mails } from '../../delivery/mail/mail.service.ts';
import type { Db, Pod } from '../../platform/database/tables.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import { countOutcome, type PodOutcome } from '../executors/reliability.service.ts';
import {
  CREATION_STATES,
  type PodState,
  podStateOf,
  type WireStatus,
  wirePhase,
  wireStatus,
} from './pod.state.ts';
import { mailPodFailed } from './pod-mails.ts';
import { statusOf } from './pod-response.ts';

export type PodEvent = Pick<RecordedEvent, 'subEventType' | 'actor' | 'reason'> & {
  /** Status after the event; default: the pod's present status. */
  toStatus?: WireStatus;
  /** Members added to the payload, in addition to the pod's name and node. */
  facts?: Readonly<Record<string, unknown>>;
};

/** An event without a request, such as a warning or a stop. */
export const SYSTEM_EVENT = {
  subEventType: 'pod-lifecycle.status',
  actor: SYSTEM_ACTOR,
} as const satisfies PodEvent;

/** Records an event of a pod. Must run in the transaction of the change; `pod` is the row before the change. */
export async function recordPodEvent(
  tx: Db,
  deps: { clock: Clock; random: Random },
  pod: Pod,
  { facts = {}, ...event }: PodEvent,
): Promise<void> {
  const status = statusOf(pod);
  await recordEvent(tx, deps, {
    accountId: pod.account_id,
    podId: pod.id,
    fromStatus: status,
    toStatus: status,
    ...event,
    payload: { pod_name: pod.pod_name, node: pod.executor_id, ...facts },
  });
}

type EventName = { type: EventType; outcome: 'success' | 'failed' | 'status' };

/** States that cause a mail to the renter. */
const FAILURES: readonly PodState[] = ['creation_failed', 'reboot_failed', 'failed', 'broken'];

export type Transition = {
  reason: EventReason | null;
  message: string;
  /** True if a change of the pod failed and was reverted. */
  isUndone?: boolean;
  /** True if the node caused the failure or the lost contact. Then the move affects the node's reliability. */
  isNodeFault?: boolean;
};

export type TransitionDeps = { clock: Clock; random: Random; mails: Mails };

/**
 * Records the event of a move to `to`, and queues a mail if the pod failed. Must run in the transaction of the move;
 * `pod` is the row before the move.
 */
export async function recordTransition(
  tx: Db,
  deps: TransitionDeps,
  pod: Pod,
  to: PodState,
  { reason, message, isUndone = false, isNodeFault = false }: Transition,
): Promise<void> {
  const from = podStateOf(pod.state);
  const { type, outcome }: EventName = isUndone
    ? { type: 'pod-reboot', outcome: 'failed' }
    : eventFor(from, to);
  const counted = isUndone ? null : nodeOutcome(from, to, isNodeFault);
  if (counted !== null) await countOutcome(tx, pod.executor_id, counted, deps.clock.now());
  const cause = causeOf(from, type);
  const requestId = cause === null ? null : await lastRequestId(tx, pod.id, cause);
  if (FAILURES.some((state) => state === to)) {
    await mailPodFailed(tx, deps.mails, pod, message, deps.clock.now());
  }
  await recordPodEvent(tx, deps, pod, {
    subEventType: `${type}.${outcome}`,
    actor: { ...SYSTEM_ACTOR, requestId },
    toStatus: wireStatus(to),
    reason,
    facts: {
      ...(outcome === 'failed' ? { error: message } : {}),
      // Several states share one status; the phase distinguishes them.
      ...(outcome === 'status' ? { detail: wirePhase(to) } : {}),
    },
  });
}

/** Returns the effect of the move on the node's reliability; null if it has none. */
function nodeOutcome(from: PodState, to: PodState, isNodeFault: boolean): PodOutcome | null {
  if (to === 'running') return isCreation(from) ? 'launches_succeeded' : null;
  if (!isNodeFault) return null;
  if (to === 'unknown') return 'interruptions';
  return to === 'creation_failed' ? 'launches_failed' : null;
}

function isCreation(state: PodState): boolean {
  return CREATION_STATES.some((creation) => creation === state);
}

/**
 * Returns the event of a transition. A pod that returns from `unknown` to `running` causes a status change, not a
 * second creation.
 */
function eventFor(from: PodState, to: PodState): EventName {
  switch (to) {
    case 'creation_failed':
      return { type: 'pod-create', outcome: 'failed' };
    case 'reboot_failed':
      return { type: 'pod-reboot', outcome: 'failed' };
    case 'failed':
    case 'broken':
      return { type: 'pod-fail', outcome: 'failed' };
    case 'deleted':
      return { type: 'pod-delete', outcome: 'success' };
    case 'running':
      if (from === 'rebooting') return { type: 'pod-reboot', outcome: 'success' };
      return isCreation(from)
        ? { type: 'pod-create', outcome: 'success' }
        : { type: 'pod-lifecycle', outcome: 'status' };
    default:
      return { type: 'pod-lifecycle', outcome: 'status' };
  }
}

/**
 * Returns the type of the request event that caused an event of type `type`, which inherits its request id; null if no
 * request caused the event.
 */
function causeOf(from: PodState, type: EventType): SubEventType | null {
  if (type === 'pod-delete') return 'pod-delete.requested';
  if (type === 'pod-reboot') return 'pod-reboot.requested';
  return isCreation(from) ? 'pod-rent.success' : null;
}

/** Parses the stored reason of a removal; returns null for a reason that events do not have. */
export function removalReasonOf(code: string | null): EventReason | null {
  return EVENT_REASONS.find((reason) => reason === code) ?? null;
}
