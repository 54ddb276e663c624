/** A notebook server's row: from request to answer, and what its ends and failures lead to. Pure. */
import type { NotebookReason, NotebookRequest, NotebookView } from '#shared/api/agent/notebook.ts';
import type { NotebookRow } from './notebook.store.ts';

/** From the request, or the end of a running server, to its answer. */
export const BRING_UP_MS = 15 * 60_000;
/** Starts in a row of a server that had been running before it is given up. */
export const MAX_RESTARTS = 6;
/** After this long without an end the failures before are forgotten. */
export const SETTLED_MS = 60_000;
const FIRST_BACKOFF_MS = 1_000;
const LAST_BACKOFF_MS = 60_000;

export type NotebookPatch = Partial<Omit<NotebookRow, 'pod_id' | 'request'>>;

/** The row of a request that has just come; `before` may still have a server that is to be ended. */
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

/** It answers. */
export function answering(nowMs: number): NotebookPatch {
  return { status: 'running', step: null, reason: null, message: '', since_ms: nowMs };
}

/** A running one does not answer any more. `podBeganMs`: when its pod last began to run. */
export function ended(
  row: NotebookRow,
  facts: { nowMs: number; podBeganMs: number; message: string },
): NotebookPatch {
  const { nowMs, message } = facts;
  // It went down with its pod, which is no fault of its own.
  const withPod = facts.podBeganMs > row.since_ms;
  const attempts = withPod ? 0 : row.attempts + 1;
  if (attempts > MAX_RESTARTS) return givenUp('NotebookNotReady', message, nowMs);
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

/** A bring-up failed. Only a server that had been running gets further tries. */
export function failed(
  row: NotebookRow,
  { reason, message }: { reason: NotebookReason; message: string },
  nowMs: number,
): NotebookPatch {
  const attempts = row.attempts + 1;
  const again = row.status === 'restarting' && reason === 'NotebookNotReady';
  if (!again || attempts > MAX_RESTARTS) return givenUp(reason, message, nowMs);
  return { step: null, message, attempts, next_try_ms: nowMs + backoffMs(attempts) };
}

/** As the wire shows it. */
export function notebookView(row: NotebookRow): NotebookView {
  const { request, internal_port, status, step, reason, message, path, since_ms } = row;
  return { request, internal_port, status, step, reason, message, path, since_ms };
}

function givenUp(reason: NotebookReason, message: string, nowMs: number): NotebookPatch {
  return { status: 'failed', step: null, reason, message, since_ms: nowMs };
}

function backoffMs(attempts: number): number {
  return Math.min(FIRST_BACKOFF_MS * 2 ** Math.max(0, attempts - 1), LAST_BACKOFF_MS);
}
