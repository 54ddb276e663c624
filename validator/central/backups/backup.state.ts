/** The states of backups and restores and the moves between them (marketplace reference 6). Pure. */

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

/** Those of a restore, of which nothing is kept that could run out. */
export const RESTORE_STATES = [
  'PENDING',
  'IN_PROGRESS',
  'COMPLETED',
  'FAILED',
  'CANCELLED',
] as const;

/** Every allowed move. A run that is skipped is never anything else before it is deleted. */
const MOVES: Record<OperationState, readonly OperationState[]> = {
  PENDING: ['IN_PROGRESS', 'FAILED', 'CANCELLED'],
  IN_PROGRESS: ['COMPLETED', 'FAILED', 'CANCELLED'],
  COMPLETED: ['EXPIRED', 'DELETED'],
  FAILED: ['DELETED'],
  CANCELLED: ['DELETED'],
  SKIPPED: ['DELETED'],
  EXPIRED: ['DELETED'],
  DELETED: [],
};

/** Every state from which `to` can be entered: the condition of an update that makes the move. */
export function sourcesOf(to: OperationState): OperationState[] {
  return BACKUP_STATES.filter((from) => MOVES[from].includes(to));
}
