/** A pod's notebook server: how it is asked for, and what the node says of it (contract 5.1, 5.2). */
import type { PodSpecInput, PodView } from '#shared/api/agent/pod.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Db, Pod } from '../../platform/database/tables.ts';
import { podStateOf, wireStatus } from './pod.state.ts';
import { changePod } from './pod.store.ts';

/** Where notebook servers are by custom; a rental with `enable_jupyter` gets this port. */
export const NOTEBOOK_PORT = 8888;
const SSH_PORT = 22;
const MAX_ERROR_CHARS = 2_000;

type NotebookColumns = Pick<Pod, 'jupyter_status' | 'jupyter_error' | 'jupyter_path'>;

const UNKNOWN: NotebookColumns = { jupyter_status: null, jupyter_error: null, jupyter_path: null };

/** The columns of a pod that is to have a server on `port`, or none where that is null. */
export function newNotebook(port: number | null) {
  const wanted = port === null ? 0 : 1;
  return {
    enable_jupyter: wanted,
    jupyter_port: port,
    jupyter_requests: wanted,
    ...UNKNOWN,
  } as const;
}

/** Stored only: the sync asks the node. One that is there or on its way on this port is left alone. */
export async function askForNotebook(tx: Db, pod: Pod, port: number, nowMs: number): Promise<Pod> {
  if (pod.state !== 'running') {
    throw new ApiError('pod_state_conflict', `The pod is ${wireStatus(podStateOf(pod.state))}`, {
      hint: 'Ask again when the pod is RUNNING.',
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
        ? 'Rent with a template that has a port beside 22, or with enable_jupyter.'
        : `Choose one of ${open.join(', ')}.`,
  });
}

/** Whether the node has yet to be asked. Pure. */
export function isToBeAsked(pod: Pod, view: PodView): boolean {
  const asked = view.notebook?.request ?? 0;
  const wanted = pod.jupyter_port !== null && pod.jupyter_status !== 'FAILED';
  return wanted && view.phase === 'running' && asked < pod.jupyter_requests;
}

/** Whether its outcome is still to come. Pure. */
export function awaitsNotebook(pod: Pod): boolean {
  return pod.state === 'running' && pod.jupyter_port !== null && pod.jupyter_status === null;
}

/** What the node says of the server last asked for; null when the row says so already. Pure. */
export function notebookNews(pod: Pod, { notebook }: PodView): NotebookColumns | null {
  if (notebook === null || notebook.request !== pod.jupyter_requests) return null;
  const seen = columnsOf(notebook);
  const known =
    seen.jupyter_status === pod.jupyter_status &&
    seen.jupyter_error === pod.jupyter_error &&
    seen.jupyter_path === pod.jupyter_path;
  return known ? null : seen;
}

/** The columns of a server that cannot be had. Pure. */
export function notebookFailure(message: string): NotebookColumns {
  return { ...UNKNOWN, jupyter_status: 'FAILED', jupyter_error: message.slice(0, MAX_ERROR_CHARS) };
}

/** Between an end and the start that follows it the address stays as it is. */
function columnsOf({ status, reason, message, path }: NonNullable<PodView['notebook']>) {
  if (status === 'failed') return notebookFailure(`${reason}: ${message}`);
  if (status === 'installing') return UNKNOWN;
  return { jupyter_status: 'SUCCESS', jupyter_error: null, jupyter_path: path } as const;
}

/** Where its pages are, with the token that opens them; null while there is no such server. Pure. */
export function notebookUrl(pod: Pod, host: string, token: string): string | null {
  const mapped = JSON.parse(pod.ports_json) as Record<string, number>;
  const port = mapped[String(pod.jupyter_port)];
  const there = pod.jupyter_status === 'SUCCESS' && pod.state === 'running';
  if (!there || port === undefined) return null;
  return `http://${host}:${port}${pod.jupyter_path ?? '/'}?token=${token}`;
}
