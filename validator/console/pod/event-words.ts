/** Describes events of accounts and pods in sentences. Pure. */
import type { AccountEvent } from '../api/api.gen.ts';
import { wordsOf } from '../parts/format.ts';

type Described = Pick<
  AccountEvent,
  'sub_event_type' | 'detail' | 'error' | 'from_status' | 'to_status' | 'reason'
>;

export type EventWords = {
  title: string;
  /** Statuses before and after; null if the status did not change. */
  change: string | null;
  /** Why it happened; null without a reason besides the request of the renter. */
  reason: string | null;
  /** Further sentence; null without one. */
  note: string | null;
};

const TITLES: Readonly<Record<string, string>> = {
  'pod-rent.success': 'Pod rented',
  'pod-create.success': 'The pod runs',
  'pod-create.failed': 'The pod could not be started',
  'pod-reboot.requested': 'Restart requested',
  'pod-reboot.success': 'The pod has restarted',
  'pod-reboot.failed': 'The pod could not be restarted',
  'pod-delete.requested': 'The pod is being deleted',
  'pod-delete.success': 'The pod is deleted',
  'pod-fail.failed': 'The pod has failed',
  'pod-lifecycle.requested': 'Settings of the pod changed',
  'pod-lifecycle.status': 'Message about the pod',
  'backup.requested': 'Backup requested',
  'backup.success': 'Backup finished',
  'backup.failed': 'The backup failed',
  'backup.status': 'Message about a backup',
  'restore.requested': 'Restore requested',
  'restore.success': 'Restore finished',
  'restore.failed': 'The restore failed',
  'restore.status': 'Message about a restore',
  'billing.success': 'Money moved',
  'billing.failed': 'A payment failed',
  'billing.status': 'Message about the balance',
  'notice.status': 'Notice of the provider',
  'account.success': 'Account changed',
  'account.failed': 'Problem of the account',
  'account.status': 'Message about the account',
};

/** Sentences of details that are names. They are the title of an event that reports a status. */
const DETAILS: Readonly<Record<string, string>> = {
  queued: 'The pod waits for the node',
  building: 'The node builds the image',
  pulling: 'The node downloads the image',
  starting: 'The node starts the container',
  restoring: 'The node restores the data',
  configuring: 'The node sets up access',
  ready: 'The pod runs again',
  rebooting: 'The pod restarts',
  stopped: 'The pod has stopped',
  resumed: 'The pod starts again',
  unreachable: 'The node does not answer',
  deleting: 'The node removes the pod',
  removal_scheduled: 'Removal scheduled',
  removal_cancelled: 'Scheduled removal cancelled',
  removal_warning: 'The pod will be removed soon',
  idle_warning: 'The pod is idle and will be stopped soon',
  cancelled: 'Cancelled',
  partial: 'Some files could not be read',
  pod_restarted: 'The pod was restarted for it',
  verify_requested: 'Verification of a backup requested',
  verify_completed: 'A backup was verified',
  verify_failed: 'The verification of a backup failed',
  verify_cancelled: 'The verification of a backup was cancelled',
  volume: 'It concerns the volume',
  volume_attached: 'Volume attached',
  volume_restored: 'The data of the volume is on the node',
  volume_saved: 'The data of the volume is saved',
  volume_given_up: 'The data of the volume could not be saved',
};

const REASONS: Readonly<Record<string, string>> = {
  scheduled_termination: 'The scheduled time has come.',
  balance_exhausted: 'The balance is spent.',
  max_spend_reached: 'The budget is spent.',
  idle_shutdown: 'The pod was idle.',
  provider_notice: 'The provider removes the node.',
  provider_fault: 'The node failed.',
  node_removed: 'The node left the market.',
  image_pull_failed: 'The image could not be downloaded.',
  build_failed: 'The image could not be built.',
  start_failed: 'The container could not be started.',
  health_failed: 'The container has ended or does not answer.',
};

/** The actor of the event already shows that a person requested it. */
const REQUESTED = 'user_initiated';

/** Events whose detail is a sentence that has all about them. */
const OF_ACCOUNT = /^(?:billing|account|notice)\.(?:success|status)$/;
/** Events whose detail is a name of `DETAILS` that has all about them. */
const OF_STATUS = /\.(?:status|requested)$/;

/** Returns the words of an event. Names that this version does not know are shown as words. */
export function eventWords(event: Described): EventWords {
  const { sub_event_type: type, from_status: from, to_status: to, detail, error, reason } = event;
  const title = TITLES[type] ?? wordsOf(type);
  const known = detail === null ? undefined : DETAILS[detail];
  const isTitle = detail !== null && (known === undefined ? OF_ACCOUNT : OF_STATUS).test(type);
  const sentence = detail === null ? null : (known ?? sentenceOf(detail));
  const notes = [error, isTitle ? null : sentence].filter((text) => text !== null);
  return {
    title: isTitle ? (known ?? sentenceOf(detail)) : title,
    change:
      from === null || to === null || from === to ? null : `${wordsOf(from)} → ${wordsOf(to)}`,
    reason: reason === null || reason === REQUESTED ? null : reasonWords(reason),
    note: notes.length === 0 ? null : notes.join(' '),
  };
}

/** Names, such as `machine_request_fulfilled`, become words; sentences begin with a capital letter. */
function sentenceOf(detail: string): string {
  return /^[a-z_]+$/.test(detail)
    ? wordsOf(detail)
    : detail.charAt(0).toUpperCase() + detail.slice(1);
}

/** Sentence of the reason for an event or for the end of a pod. */
export function reasonWords(reason: string): string {
  if (reason === REQUESTED) return 'Deleted on your request.';
  return REASONS[reason] ?? `${wordsOf(reason)}.`;
}
