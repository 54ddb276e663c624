/** State transitions of a notebook server's row. Pure. */
import type { NotebookReason, NotebookRequest, NotebookView } from '#shared/api/agent/notebook.ts';
import type { NotebookRow } from './notebook.store.ts';

/** Maximum duration of a bring-up, counted from the request or from the end of a running server. */
export const BRING_UP_MS = 15 * 60_000;
/** Consecutive restarts of a server that had been running before it counts as failed. */
export const MAX_RESTARTS = 6;
/** Uptime of a server after which its count of restarts is reset. */
export const SETTLED_MS = 60_000;
const FIRST_BACKOFF_MS = 1_000;
const LAST_BACKOFF_MS = 60_000;

export type NotebookPatch = Partial<Omit<NotebookRow, 'pod_id' | 'request'>>;

/** Returns the row of a new request. `before` may still have a running server, which the bring-up ends. */
export function requestedRow(
  podId: string,
  wanted: NotebookRequest,
  before: NotebookRow | null,
  nowMs: number,
): NotebookRow {
  return {
    pod_id: podId,
    request: wanted.request,
    internal_port: wanted.internal_port,
    token: wanted.token,
    status: 'installing',
    step: null,
    reason: null,
    message: '',
    path: null,
    exec_id: before?.exec_id ?? null,
    attempts: 0,
    next_try_ms: 0,
    deadline_ms: nowMs + BRING_UP_MS,
    since_ms: nowMs,
  };
}

/** Transition: the server answers. */
export function running(nowMs: number): NotebookPatch {
  return { status: 'running', step: null, reason: null, message: '', since_ms: nowMs };
}

/** Transition: a running server ended or stopped answering. `podBeganMs`: last start of its pod. */
export function ended(
  row: NotebookRow,
  facts: { nowMs: number; podBeganMs: number; message: string },
): NotebookPatch {
  const { nowMs, message } = facts;
  // The server ended together with its pod, which does not count as a failure.
  const withPod = facts.podBeganMs > row.since_ms;
  const attempts = withPod ? 0 : row.attempts + 1;
  if (attempts > MAX_RESTARTS) return permanentlyFailed('NotebookNotReady', message, nowMs);
  return {
    status: 'restarting',
    step: null,
    message,
    attempts,
    next_try_ms: withPod ? 0 : nowMs + backoffMs(attempts),
    deadline_ms: nowMs + BRING_UP_MS,
    since_ms: nowMs,
  };
}

/** Transition: a bring-up failed. Only a server that had been running is retried. */
export function failed(
  row: NotebookRow,
  { reason, message }: { reason: NotebookReason; message: string },
  nowMs: number,
): NotebookPatch {
  const attempts = row.attempts + 1;
  const canRetry = row.status === 'restarting' && reason === 'NotebookNotReady';
  if (!canRetry || attempts > MAX_RESTARTS) return permanentlyFailed(reason, message, nowMs);
  return { step: null, message, attempts, next_try_ms: nowMs + backoffMs(attempts) };
}

export function notebookView(row: NotebookRow): NotebookView {
  const { request, internal_port, status, step, reason, message, path, since_ms } = row;
  return { request, internal_port, status, step, reason, message, path, since_ms };
}

function permanentlyFailed(reason: NotebookReason, message: string, nowMs: number): NotebookPatch {
  return { status: 'failed', step: null, reason, message, since_ms: nowMs };
}

function backoffMs(attempts: number): number {
  return Math.min(FIRST_BACKOFF_MS * 2 ** Math.max(0, attempts - 1), LAST_BACKOFF_MS);
}
