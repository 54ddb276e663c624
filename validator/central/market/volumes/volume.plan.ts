/** Chooses the next step for a copy of a volume by comparing its row with its node's report. Pure. */
import type { OperationError } from '#shared/api/agent/operations.ts';
import type { VolumeCopy } from '../../platform/database/tables.ts';
import { LOST_AFTER_MS } from './volume.state.ts';

export type CopyStep =
  /** Create the copy on the node. */
  | 'put'
  /** Mark the empty copy as complete. */
  | 'attach'
  /** Begin the restore, the save, or the next periodic save of the copy. */
  | 'begin'
  /** Query the running operation. */
  | 'poll'
  /** Record that the node has lost the copy. */
  | 'lost'
  /** Remove the copy from the node. */
  | 'drop'
  | 'wait';

/** Chooses the step. `isPresent`: the node lists the copy. */
export function copyStep(
  copy: VolumeCopy,
  { isPresent, isPodGoing, nowMs }: { isPresent: boolean; isPodGoing: boolean; nowMs: number },
): CopyStep {
  const begun = copy.operation_id === null ? beginStep(copy, nowMs) : 'poll';
  switch (copy.state) {
    case 'restoring':
      if (isPodGoing || cannotRestore(copy)) return 'wait';
      if (!isPresent) return isDue(copy, nowMs) ? 'put' : 'wait';
      return copy.source_snapshot_id === null ? 'attach' : begun;
    case 'attached':
      if (!isPresent) return absentStep(copy, nowMs);
      return copy.operation_id === null && copy.retry_at === null ? 'wait' : begun;
    case 'saving':
      return isPresent ? begun : absentStep(copy, nowMs);
    case 'dropping':
      return 'drop';
  }
}

/** Maximum number of attempts to restore for a waiting rental. Saves are retried without limit. */
const MAX_RESTORES = 6;
/** Errors that another attempt on this node cannot resolve. */
const HOPELESS: readonly string[] = [
  'Refused',
  ...([
    'RepositoryMissing',
    'RepositoryAuth',
    'RepositoryCorrupt',
    'SnapshotMissing',
    'VerificationFailed',
    'NoSpace',
  ] satisfies OperationError[]),
];

/** Returns true if the restore has failed permanently, so that its pod cannot start. */
export function cannotRestore({ state, error_code: code, attempts }: VolumeCopy): boolean {
  return (
    state === 'restoring' && code !== null && (attempts >= MAX_RESTORES || HOPELESS.includes(code))
  );
}

/** Error code of a save that could not read every file. */
export const PARTIAL = 'Partial';
const MAX_TRIES = 3;

/**
 * Decides whether to accept a snapshot. A partial snapshot lacks files that could not be read. It is accepted while the
 * volume is in use. After that it is accepted only if at least MAX_TRIES saves have failed, the last of them with a
 * partial snapshot.
 */
export function acceptsSnapshot(quality: 'full' | 'partial' | null, copy: VolumeCopy): boolean {
  if (quality === 'full' || copy.state === 'attached') return true;
  return copy.error_code === PARTIAL && copy.attempts >= MAX_TRIES;
}

const FIRST_PAUSE_MS = 5_000;
const LAST_PAUSE_MS = 600_000;

/** Pause after the given number of failed attempts. */
export function pauseAfter(attempts: number): number {
  return Math.min(FIRST_PAUSE_MS * 2 ** Math.min(attempts - 1, 10), LAST_PAUSE_MS);
}

function absentStep({ seen_at: seenAt }: VolumeCopy, nowMs: number): CopyStep {
  return nowMs - seenAt >= LOST_AFTER_MS ? 'lost' : 'wait';
}

function beginStep(copy: VolumeCopy, nowMs: number): CopyStep {
  return isDue(copy, nowMs) ? 'begin' : 'wait';
}

function isDue({ retry_at: retryAt }: VolumeCopy, nowMs: number): boolean {
  return retryAt === null || retryAt <= nowMs;
}
