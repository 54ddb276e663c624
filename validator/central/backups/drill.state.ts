/** How the last drill of a backup stands (marketplace reference 1.17). Pure. */

/**
 * `PASSED` and `FAILED` are verdicts on the backup. `INCONCLUSIVE`: something else stood in the way; `CANCELLED`: it
 * gave way to other work on its pod.
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

/** What only a backup that cannot be had back leads to. */
const VERDICTS: readonly (string | null)[] = [
  'RepositoryMissing',
  'RepositoryAuth',
  'RepositoryCorrupt',
  'SnapshotMissing',
  'VerificationFailed',
];

/** What a failure with this code, a node's or one of ours, says of the backup. */
export function failedStatusOf(code: string | null): 'FAILED' | 'INCONCLUSIVE' {
  return VERDICTS.includes(code) ? 'FAILED' : 'INCONCLUSIVE';
}
