/** Why a segment of a pod's life is billable or not, as shown in statements. Pure. */
import type { PodState } from '../../market/pods/pod.state.ts';

export const USAGE_CAUSE_NAMES = [
  'running',
  'user_reboot',
  'reboot_failed',
  'contact_lost',
  'maintenance',
  'provider_fault',
  'failed',
  'balance_exhausted',
  'max_spend_reached',
  'idle_shutdown',
  'restarting',
  'ended',
] as const;
export type UsageCause = (typeof USAGE_CAUSE_NAMES)[number];

/** Cause of each state, unless the change states another. */
export const USAGE_CAUSES: Record<PodState, UsageCause> = {
  pending: 'restarting',
  building: 'restarting',
  pulling: 'restarting',
  starting: 'restarting',
  restoring: 'restarting',
  running: 'running',
  rebooting: 'user_reboot',
  reboot_failed: 'reboot_failed',
  unknown: 'contact_lost',
  failed: 'failed',
  broken: 'provider_fault',
  stopped: 'balance_exhausted',
  creation_failed: 'failed',
  deleting: 'ended',
  deleted: 'ended',
};
