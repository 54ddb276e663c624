/** States of backups and restores with their transitions, and results of restore drills. Pure. */

export const BACKUP_STATES = [
  'PENDING',
  'IN_PROGRESS',
  'COMPLETED',
  'FAILED',
  'CANCELLED',
  'SKIPPED',
  'EXPIRED',
  'DELETED',
] as const;
export type OperationState = (typeof BACKUP_STATES)[number];

/** States of restores, which never expire. */
export const RESTORE_STATES = [
  'PENDING',
  'IN_PROGRESS',
  'COMPLETED',
  'FAILED',
  'CANCELLED',
] as const;

/** Allowed transitions from each state. */
const TRANSITIONS: Record<OperationState, readonly OperationState[]> = {
  PENDING: ['IN_PROGRESS', 'FAILED', 'CANCELLED'],
  IN_PROGRESS: ['COMPLETED', 'FAILED', 'CANCELLED'],
  COMPLETED: ['EXPIRED', 'DELETED'],
  FAILED: ['DELETED'],
  CANCELLED: ['DELETED'],
  SKIPPED: ['DELETED'],
  EXPIRED: ['DELETED'],
  DELETED: [],
};

/** Returns the states that have a transition to `to`, for the condition of the update. */
export function sourcesOf(to: OperationState): OperationState[] {
  return BACKUP_STATES.filter((from) => TRANSITIONS[from].includes(to));
}

/**
 * Result of the last drill of a backup. `PASSED` and `FAILED` are verdicts on the backup. `INCONCLUSIVE`: the drill
 * failed for a reason that does not concern the backup. `CANCELLED`: other work on the pod had priority.
 */
export const VERIFY_STATUSES = [
  'PENDING',
  'IN_PROGRESS',
  'PASSED',
  'FAILED',
  'INCONCLUSIVE',
  'CANCELLED',
] as const;
export type VerifyStatus = (typeof VERIFY_STATUSES)[number];

/** Error codes which mean that the backup cannot be restored. */
const VERDICT_CODES: readonly (string | null)[] = [
  'RepositoryMissing',
  'RepositoryAuth',
  'RepositoryCorrupt',
  'SnapshotMissing',
  'VerificationFailed',
];

/** Returns the result of a drill that failed with `code`, which the node or this process set. */
export function failedStatusOf(code: string | null): 'FAILED' | 'INCONCLUSIVE' {
  return VERDICT_CODES.includes(code) ? 'FAILED' : 'INCONCLUSIVE';
}
