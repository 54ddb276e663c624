/** Stages of backups, restores and drills, their transitions, and the effect of an agent's restart. Pure. */
import {
  FINAL_STAGES,
  type OperationError,
  type OperationView,
} from '#shared/api/agent/operations.ts';
import type { OperationRow, Progress, RestoreJournal } from './operation.store.ts';

export type Stage = OperationView['stage'];

const ENDS = ['failed', 'cancelled'] as const;

/**
 * Every transition; a row may also stay in its stage. A transition back to `queued` means that the agent stopped during
 * the operation. From the stage `swapping` on, a restore can only complete or roll back, so it cannot be cancelled.
 */
export const MOVES: Record<OperationRow['kind'], Partial<Record<Stage, readonly Stage[]>>> = {
  backup: {
    queued: ['preparing', ...ENDS],
    preparing: ['uploading', 'queued', ...ENDS],
    uploading: ['verifying', 'queued', ...ENDS],
    verifying: ['done', 'queued', ...ENDS],
  },
  restore: {
    // To `committed`: the tree was put into the running pod.
    queued: ['fetching', 'committed', ...ENDS],
    fetching: ['verifying', 'queued', ...ENDS],
    verifying: ['stopping', 'committed', 'queued', ...ENDS],
    stopping: ['swapping', 'queued', ...ENDS],
    swapping: ['starting', 'failed'],
    starting: ['committed', 'swapping', 'failed'],
    committed: ['done'],
  },
  verify: {
    queued: ['preparing', ...ENDS],
    preparing: ['fetching', 'queued', ...ENDS],
    fetching: ['verifying', 'queued', ...ENDS],
    verifying: ['done', 'queued', ...ENDS],
  },
};

/** An operation fails after this many attempts that the end of the agent interrupted. */
export const MAX_ATTEMPTS = 5;
const MAX_LOG_LINES = 100;

export const NO_PROGRESS: Progress = {
  total_files: null,
  processed_files: null,
  total_bytes: null,
  processed_bytes: null,
  percent: 0,
  bytes_per_second: null,
  remaining_seconds: null,
};

export function mayMove(row: OperationRow, to: Stage): boolean {
  return row.stage === to || (MOVES[row.kind][row.stage]?.includes(to) ?? false);
}

export function isFinal(stage: Stage): boolean {
  return FINAL_STAGES.some((final) => final === stage);
}

/** Returns true while the pod's tree may be exchanged: no process of the pod may run then. */
export function pausesPod(row: OperationRow | null): boolean {
  return row !== null && (row.stage === 'stopping' || row.stage === 'swapping');
}

/** Returns true while nothing in the pod has changed. */
export function isCancellable({ stage }: OperationRow): boolean {
  return !['swapping', 'starting', 'committed'].includes(stage);
}

/**
 * Returns the patch for an unfinished row when an agent starts. Backups and drills run again; restic reuses uploaded
 * data. A restore before the stage `swapping` starts again while the pod runs on its old tree; from that stage on, it
 * continues.
 */
export function recoveryPatch(row: OperationRow): Partial<OperationRow> {
  return isCancellable(row) ? { stage: 'queued' } : {};
}

export function isExhausted(row: OperationRow): boolean {
  return isCancellable(row) && row.attempts >= MAX_ATTEMPTS;
}

/** Appends a line and drops the oldest beyond the limit. */
export function withLine(log: readonly string[], line: string): string[] {
  return [...log, line].slice(-MAX_LOG_LINES);
}

/** Returns the new progress. The percentage never decreases, and reaches 100 only at the end. */
export function advanced(before: Progress, now: Partial<Progress>): Progress {
  const percent = Math.min(99, Math.max(before.percent, Math.floor((now.percent ?? 0) * 10) / 10));
  return { ...before, ...now, percent };
}

/** Returns the patch for the end of an operation; it deletes the repository's secrets. */
export function finished(
  row: OperationRow,
  outcome: 'done' | 'cancelled' | { code: OperationError; message: string },
  nowMs: number,
): Partial<OperationRow> {
  const isFailure = typeof outcome === 'object';
  return {
    stage: isFailure ? 'failed' : outcome,
    error: isFailure ? outcome : null,
    progress: {
      ...row.progress,
      ...(outcome === 'done'
        ? { percent: 100, remaining_seconds: 0 }
        : { remaining_seconds: null }),
    },
    sealed_repository: null,
    heartbeat_ms: nowMs,
    finished_ms: nowMs,
  };
}

/** Returns true if the restore stops a pod that ran before, and starts it again. */
function restartsPod({ was_running, is_live }: RestoreJournal): boolean {
  return was_running && !is_live;
}

/** Converts a row to its wire form. `obstacle`: why the operation makes no progress at present. */
export function operationView(row: OperationRow, obstacle: string | null = null): OperationView {
  const { id, pod_id, kind, stage, snapshot_id, quality, error, log } = row;
  const { started_ms, heartbeat_ms, finished_ms } = row;
  const journal = row.kind === 'restore' ? row.journal : null;
  return {
    id,
    pod_id,
    kind,
    stage,
    ...row.progress,
    snapshot_id,
    quality,
    changed_files: row.changed,
    damage: row.kind === 'backup' ? (row.journal?.damage ?? null) : null,
    lost_files: journal?.lost ?? null,
    restarts_pod: journal === null || journal.step === 'fetching' ? null : restartsPod(journal),
    obstacle,
    error,
    log,
    started_ms,
    heartbeat_ms,
    finished_ms,
  };
}

/**
 * A failure that is stored in the operation's row. `message` is shown to the renter: it contains no secrets and no host
 * paths.
 */
export class OperationFailure extends Error {
  override name = 'OperationFailure';
  readonly code: OperationError;

  constructor(code: OperationError, message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}
