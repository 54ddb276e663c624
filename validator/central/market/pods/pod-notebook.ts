/** A pod's notebook server: the request, the state that the node reports, and the token. */

import { createHmac } from 'node:crypto';
import type { PodSpecInput, PodView } from '#shared/api/agent/pod.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { deriveKey } from '../../accounts/auth/derived-key.ts';
import type { Db, Pod } from '../../platform/database/tables.ts';
import { podStateOf, wireStatus } from './pod.state.ts';
import { changePod } from './pod.store.ts';

/** Conventional port of notebook servers; a rental with `enable_jupyter` maps it. */
export const NOTEBOOK_PORT = 8888;
const SSH_PORT = 22;
const MAX_ERROR_CHARS = 2_000;

type NotebookColumns = Pick<Pod, 'jupyter_status' | 'jupyter_error' | 'jupyter_path'>;

const UNKNOWN: NotebookColumns = { jupyter_status: null, jupyter_error: null, jupyter_path: null };

/** Columns of a new pod; `port` is null for a pod without a notebook server. */
export function notebookColumns(port: number | null) {
  const wanted = port === null ? 0 : 1;
  return {
    enable_jupyter: wanted,
    jupyter_port: port,
    jupyter_requests: wanted,
    ...UNKNOWN,
  } as const;
}

/** Changes only the row; the sync sends the request. A server that already runs or starts on this port is kept. */
export async function requestNotebook(tx: Db, pod: Pod, port: number, nowMs: number): Promise<Pod> {
  if (pod.state !== 'running') {
    throw new ApiError('pod_state_conflict', `The pod is ${wireStatus(podStateOf(pod.state))}`, {
      hint: 'Repeat the request when the pod is RUNNING.',
    });
  }
  requireMapped(pod, port);
  if (pod.jupyter_port === port && pod.jupyter_status !== 'FAILED') return pod;
  const change = {
    ...UNKNOWN,
    jupyter_port: port,
    jupyter_requests: pod.jupyter_requests + 1,
    updated_at: nowMs,
  };
  if (await changePod(tx, pod.id, ['running'], change)) return { ...pod, ...change };
  throw new ApiError('pod_state_conflict', 'The pod has just changed its state');
}

function requireMapped(pod: Pod, port: number): void {
  const { internal_ports: wanted = [] } = JSON.parse(pod.spec_json) as PodSpecInput;
  const mapped = JSON.parse(pod.ports_json) as Record<string, number>;
  const open = wanted.filter((each) => each !== SSH_PORT && String(each) in mapped);
  if (open.includes(port)) return;
  throw new ApiError('bad_request', `Port ${port} of the pod is not mapped for a notebook server`, {
    hint:
      open.length === 0
        ? 'Rent with a template that has a port other than 22, or with enable_jupyter.'
        : `Choose one of ${open.join(', ')}.`,
  });
}

/** Returns true if the node has not received the latest request. Pure. */
export function needsNotebookRequest(pod: Pod, view: PodView): boolean {
  const received = view.notebook?.request ?? 0;
  const wanted = pod.jupyter_port !== null && pod.jupyter_status !== 'FAILED';
  return wanted && view.phase === 'running' && received < pod.jupyter_requests;
}

/** Returns true while the outcome of the latest request is unknown. Pure. */
export function awaitsNotebook(
  pod: Pick<Pod, 'state' | 'jupyter_port' | 'jupyter_status'>,
): boolean {
  return pod.state === 'running' && pod.jupyter_port !== null && pod.jupyter_status === null;
}

/**
 * Columns reported for the latest request; null if the row already has them, or if the node reports no notebook server
 * for this request. Pure.
 */
export function notebookChange(pod: Pod, { notebook }: PodView): NotebookColumns | null {
  if (notebook === null || notebook.request !== pod.jupyter_requests) return null;
  const reported = columnsOf(notebook);
  const isKnown =
    reported.jupyter_status === pod.jupyter_status &&
    reported.jupyter_error === pod.jupyter_error &&
    reported.jupyter_path === pod.jupyter_path;
  return isKnown ? null : reported;
}

/** Columns of a server that failed to start. Pure. */
export function notebookFailure(message: string): NotebookColumns {
  return { ...UNKNOWN, jupyter_status: 'FAILED', jupyter_error: message.slice(0, MAX_ERROR_CHARS) };
}

/** Columns for the state of a notebook server. The address does not change while the server restarts. */
function columnsOf({ status, reason, message, path }: NonNullable<PodView['notebook']>) {
  if (status === 'failed') return notebookFailure(`${reason}: ${message}`);
  if (status === 'installing') return UNKNOWN;
  return { jupyter_status: 'SUCCESS', jupyter_error: null, jupyter_path: path } as const;
}

/** Address of the server's pages, including the token; null if no server runs. Pure. */
export function notebookUrl(pod: Pod, host: string, token: string): string | null {
  const mapped = JSON.parse(pod.ports_json) as Record<string, number>;
  const port = mapped[String(pod.jupyter_port)];
  const isRunning = pod.jupyter_status === 'SUCCESS' && pod.state === 'running';
  if (!isRunning || port === undefined) return null;
  return `http://${host}:${port}${pod.jupyter_path ?? '/'}?token=${token}`;
}

/** Length of a token: 128 bits. */
const TOKEN_HEX_DIGITS = 32;

export type NotebookTokenOf = (pod: Pick<Pod, 'id' | 'jupyter_requests'>) => string;

/** Derives one token per pod and request from the deployment's secret, so that no token is stored. */
export function createNotebookTokens(secret: Uint8Array): NotebookTokenOf {
  const key = deriveKey(secret, 'notebook-token');
  return ({ id, jupyter_requests }) =>
    createHmac('sha256', key)
      .update(`${id}:${jupyter_requests}`)
      .digest('hex')
      .slice(0, TOKEN_HEX_DIGITS);
}
