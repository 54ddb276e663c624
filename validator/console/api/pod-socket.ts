/** WebSockets of a pod: its log and its terminal. Each is opened with a ticket, because browsers send no credential. */
import { type Client, queryOf } from './client.ts';
import { ApiFailure } from './failure.ts';

export type PodSocketPorts = {
  client: Client;
  /** Opens a WebSocket; `path` is from the origin. */
  openSocket(path: string): WebSocket;
};

export type PodStream = 'logs' | 'terminal';

/**
 * Returns a WebSocket that is not open yet. Rejects with an `ApiFailure` if the API issues no ticket, and with the reason
 * of the signal if it aborts before.
 */
export async function openPodSocket(
  { client, openSocket }: PodSocketPorts,
  podId: string,
  stream: PodStream,
  query: Record<string, string | number | boolean>,
  signal: AbortSignal,
): Promise<WebSocket> {
  const request = { params: { id: podId }, signal };
  const { ticket } = await client.api('POST /pods/{id}/stream-ticket', request);
  signal.throwIfAborted();
  return openSocket(
    `/api/pods/${encodeURIComponent(podId)}/${stream}${queryOf({ ...query, ticket })}`,
  );
}

/** Close codes of refusals are this number plus the HTTP status. */
const REFUSED = 4_000;

const HINTS: Readonly<Record<number, string>> = {
  400: 'It works while the pod runs.',
  401: 'Log in again.',
  404: 'The pod may have been deleted.',
  429: 'Close another view or terminal of this pod, or wait a few seconds.',
};

/** Returns the failure that a close code reports; null for other codes. `reason` is the error code. */
export function refusalOf({ code, reason }: { code: number; reason: string }): ApiFailure | null {
  const status = code - REFUSED;
  if (status < 400 || status > 599) return null;
  return new ApiFailure('The server refused the connection', {
    status,
    code: reason === '' ? `status_${status}` : reason,
    hint: HINTS[status] ?? 'Try again.',
    requestId: null,
    problems: [],
    isConnection: true,
  });
}
