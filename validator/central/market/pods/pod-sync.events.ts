/** Which event a move of the sync makes (contract 5.2, event row). Pure. */
import {
  EVENT_REASONS,
  type EventReason,
  type EventType,
  type SubEventType,
} from '../../delivery/events/event.schemas.ts';
import { CREATION_STATES, type PodState } from './pod.state.ts';

export type EventName = { type: EventType; outcome: 'success' | 'failed' | 'status' };

/** A change that its node gave up, whatever state the pod came back to. */
export const UNDONE: EventName = { type: 'pod-reboot', outcome: 'failed' };

/** The event of entering `to`; back from `unknown` a pod is not created a second time. */
export function eventOf(from: PodState, to: PodState): EventName {
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
      return CREATION_STATES.some((state) => state === from)
        ? { type: 'pod-create', outcome: 'success' }
        : { type: 'pod-lifecycle', outcome: 'status' };
    default:
      return { type: 'pod-lifecycle', outcome: 'status' };
  }
}

/** The event of the request behind one of `type`, whose request id it carries; null where a node moved by itself. */
export function causeOf(from: PodState, type: EventType): SubEventType | null {
  if (type === 'pod-delete') return 'pod-delete.requested';
  if (type === 'pod-reboot') return 'pod-reboot.requested';
  return CREATION_STATES.some((state) => state === from) ? 'pod-rent.success' : null;
}

/** The stored reason of a removal, which one of ours wrote. */
export function removalReasonOf(code: string | null): EventReason | null {
  return EVENT_REASONS.find((reason) => reason === code) ?? null;
}
