/** What is to be done about one copy of a volume, from its row and what its node says. Pure. */
import type { OperationError } from '#shared/api/agent/operations.ts';
import type { VolumeCopy } from '../../platform/database/tables.ts';
import { LOST_AFTER_MS } from './volume.state.ts';

export type CopyStep =
  /** Have the node make room for it. */
  | 'put'
  /** It begins empty, and may be had. */
  | 'attach'
  /** Begin its restore or backup, under an id of its own; while a pod has it, when the next save has come. */
  | 'begin'
  /** Ask where that stands. */
  | 'ask'
  /** The node has nothing of it any more. */
  | 'lost'
  /** Have the node remove it. */
  | 'drop'
  | 'wait';

/** The next step; `isThere`: the node lists it. */
export function copyStep(
  copy: VolumeCopy,
  { isThere, isPodGoing, nowMs }: { isThere: boolean; isPodGoing: boolean; nowMs: number },
): CopyStep {
  const begun = copy.operation_id === null ? beginStep(copy, nowMs) : 'ask';
  switch (copy.state) {
    case 'restoring':
      if (isPodGoing || isHopeless(copy)) return 'wait';
      if (!isThere) return isDue(copy, nowMs) ? 'put' : 'wait';
      return copy.source_snapshot_id === null ? 'attach' : begun;
    case 'attached':
      if (!isThere) return absentStep(copy, nowMs);
      return copy.operation_id === null && copy.retry_at === null ? 'wait' : begun;
    case 'saving':
      return isThere ? begun : absentStep(copy, nowMs);
    case 'dropping':
      return 'drop';
  }
}

/** A rental waits for its volume this often; saving is tried for ever. */
const MAX_RESTORES = 6;
/** What no other attempt on this node can mend. */
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

/** Whether the pod of a copy that is being restored will not get it. */
export function isHopeless({ state, error_code: code, attempts }: VolumeCopy): boolean {
  return (
    state === 'restoring' && code !== null && (attempts >= MAX_RESTORES || HOPELESS.includes(code))
  );
}

/** Why a save is tried again that could not read every file. */
export const PARTIAL = 'Partial';
const MAX_TRIES = 3;

/**
 * With a partial snapshot, files could not be read: of what nobody writes to it is taken only when trying again did not
 * help. What failed before for another reason, as a storage that was away, says nothing about the files.
 */
export function isGoodEnough(quality: 'full' | 'partial' | null, copy: VolumeCopy): boolean {
  if (quality === 'full' || copy.state === 'attached') return true;
  return copy.error_code === PARTIAL && copy.attempts >= MAX_TRIES;
}

const FIRST_PAUSE_MS = 5_000;
const LAST_PAUSE_MS = 600_000;

/** From a failed attempt, the how many-th, to the next. */
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
