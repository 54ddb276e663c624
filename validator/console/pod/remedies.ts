/** Remedies for the reasons of events and of failed pods. Pure. */

/** Reasons of events, of `reason_code`. A reason that is missing here needs no remedy. */
const REMEDIES: Record<string, string> = {
  scheduled_termination: 'The removal was scheduled. Rent again, and choose a later time or none.',
  balance_exhausted: 'Add credit under Money: a stopped pod then starts again.',
  max_spend_reached:
    'Raise the budget in Settings: a stopped pod then starts again, before it is deleted.',
  idle_shutdown:
    'Set the idle limit again in Settings: a stopped pod then starts again, before it is deleted.',
  provider_notice: 'The provider removed the node. Restore a backup into a pod on another node.',
  provider_fault: 'The node failed. This time is not charged. Rent on another node.',
  node_removed: 'The node left the market. Restore a backup into a pod on another node.',
  image_pull_failed:
    'Check the name and tag of the image, and the registry login of the template if it is private.',
  build_failed: 'Correct the Dockerfile. The message has the step that failed.',
  start_failed: 'Check the entry point and the start commands of the template, then try again.',
  health_failed: 'The container ends or does not answer. Check its log and its start commands.',
};

/** Null: no remedy is known or needed. */
export function remedyOf(reason: string | null): string | null {
  return reason === null ? null : (REMEDIES[reason] ?? null);
}
