/** Stages of backups, restores and drills, the moves between them, and what a restart makes of them. Pure (agent reference 14). */
import {
  FINAL_STAGES,
  type OperationError,
  type OperationView,
} from '#shared/api/agent/operations.ts';
import type { OperationRow, Progress } from './operation.store.ts';

export type Stage = OperationView['stage'];

const ENDS = ['failed', 'cancelled'] as const;

/**
 * Every move there is; staying is one, too. Back to `queued`: the agent was ended in between. From `swapping` on a
 * restore can only be finished or undone, so it cannot be cancelled any more.
 */
export const MOVES: Record<OperationRow['kind'], Partial<Record<Stage, readonly Stage[]>>> = {
  backup: {
    queued: ['preparing', ...ENDS],
    preparing: ['uploading', 'queued', ...ENDS],
    uploading: ['verifying', 'queued', ...ENDS],
    verifying: ['done', 'queued', ...ENDS],
  },
  restore: {
    queued: ['fetching', ...ENDS],
    fetching: ['verifying', 'queued', ...ENDS],
    verifying: ['stopping', 'queued', ...ENDS],
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

/** Begun this often without an end, each time cut off by the agent's own: it is not begun again. */
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

/** Whether it may go there. */
export function mayMove(row: OperationRow, to: Stage): boolean {
  return row.stage === to || (MOVES[row.kind][row.stage]?.includes(to) ?? false);
}

export function isFinal(stage: Stage): boolean {
  return FINAL_STAGES.some((final) => final === stage);
}

/** While the pod's tree may be exchanged, nothing of it may run. */
export function holdsPod(row: OperationRow | null): boolean {
  return row !== null && (row.stage === 'stopping' || row.stage === 'swapping');
}

/** Nothing was changed in the pod yet. */
export function isCancellable({ stage }: OperationRow): boolean {
  return !['swapping', 'starting', 'committed'].includes(stage);
}

/**
 * What the next agent makes of an unfinished row. A backup is run again: what it has sent counts; so is a drill. A
 * restore whose swap has not begun starts anew, the pod running on its old tree; later ones go on where they were.
 */
export function recovered(row: OperationRow): Partial<OperationRow> {
  return isCancellable(row) ? { stage: 'queued' } : {};
}

/** Whether it was begun too often. */
export function isWornOut(row: OperationRow): boolean {
  return isCancellable(row) && row.attempts >= MAX_ATTEMPTS;
}

/** One line more; the oldest go. */
export function withLine(log: readonly string[], line: string): string[] {
  return [...log, line].slice(-MAX_LOG_LINES);
}

/** Percentages never fall, whatever restic learns on the way, and are 100 only with the end. */
export function advanced(before: Progress, now: Partial<Progress>): Progress {
  const percent = Math.min(99, Math.max(before.percent, Math.floor((now.percent ?? 0) * 10) / 10));
  return { ...before, ...now, percent };
}

/** The end of it; the repository's secrets go. */
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

/** As the wire shows it. */
export function operationView(row: OperationRow): OperationView {
  const { id, pod_id, kind, stage, snapshot_id, quality, error, log } = row;
  const { started_ms, heartbeat_ms, finished_ms } = row;
  return {
    ...{ id, pod_id, kind, stage },
    ...row.progress,
    ...{ snapshot_id, quality, error, log, started_ms, heartbeat_ms, finished_ms },
  };
}

// MERGED agent/backups/operation.state.ts: Why a backup or restore failed, as its row will say.
/** `message` is shown to the renter: no secrets and no paths of the host in it. */
export class OperationFailure extends Error {
  override name = 'OperationFailure';
  readonly code: OperationError;

  constructor(code: OperationError, message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}
