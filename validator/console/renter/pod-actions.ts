/** Actions on a pod by its status. All pages use this table, so every page offers the same actions. Pure. */
import type { PodListItemResponse } from '../api/api.gen.ts';
import type { Tone } from '../parts/tone.ts';

export type PodStatus = PodListItemResponse['status'];

export const POD_ACTIONS = [
  'restart',
  'change',
  'back-up',
  'restore',
  'schedule-removal',
  'open-terminal',
  'install-notebook',
  'delete',
] as const;
export type PodAction = (typeof POD_ACTIONS)[number];

const ALWAYS: readonly PodAction[] = ['schedule-removal', 'delete'];

/** The server also checks its finer states; a refused action shows the server's reason. */
const ALLOWED: Record<PodStatus, readonly PodAction[]> = {
  PENDING: ALWAYS,
  RUNNING: POD_ACTIONS,
  REBOOT_PENDING: ['back-up', 'restore', ...ALWAYS],
  REBOOT_FAILED: ['restart', 'change', 'back-up', ...ALWAYS],
  STOPPED: ['back-up', ...ALWAYS],
  FAILED: ['back-up', ...ALWAYS],
  CREATION_FAILED: ['delete'],
  BROKEN: ALWAYS,
  DELETING: [],
  DELETED: [],
};

export function mayDo(status: PodStatus, action: PodAction): boolean {
  return ALLOWED[status].includes(action);
}

const TONES: Record<PodStatus, Tone> = {
  PENDING: 'busy',
  RUNNING: 'good',
  REBOOT_PENDING: 'busy',
  REBOOT_FAILED: 'warn',
  STOPPED: 'idle',
  FAILED: 'bad',
  CREATION_FAILED: 'bad',
  BROKEN: 'bad',
  DELETING: 'busy',
  DELETED: 'idle',
};

export function toneOf(status: PodStatus): Tone {
  return TONES[status];
}

/** True from the accepted deletion on: nothing reaches the pod any more. */
export function isDeleted(status: PodStatus): boolean {
  return status === 'DELETING' || status === 'DELETED';
}

/** Phase to show beside the status; null if the status has the same meaning. */
export function phaseBeside({
  status,
  phase,
}: Pick<PodListItemResponse, 'status' | 'phase'>): string | null {
  return phase === 'ready' || phase === status.toLowerCase() ? null : phase;
}

/** Statuses that end by themselves within minutes; pages read such pods often. */
export function isChanging(status: PodStatus): boolean {
  return TONES[status] === 'busy';
}

/** Why a pod needs its renter; null if it does not. */
export function attentionOf(pod: PodListItemResponse): string | null {
  const { status, phase, message, notice_period: notice } = pod;
  if (toneOf(status) === 'bad' || toneOf(status) === 'warn' || status === 'STOPPED') {
    return message ?? 'The pod does not run.';
  }
  if (phase === 'unreachable') return 'The node does not answer. This time is not charged.';
  if (notice !== null) {
    return notice.permanent_removal
      ? 'The provider removes the node. Save your data before.'
      : 'The provider has announced maintenance of the node.';
  }
  return null;
}
