/** Opens WebSockets with a signed request: how central reaches the gateway and the gateway the agent. */
import type { IncomingMessage } from 'node:http';
import type { WebSocket } from 'ws';
import { pingPeer } from '../../http/keep-alive.ts';
import { ApiError, messageOf } from '../../runtime/errors.ts';
import {
  MAX_REFUSAL_BYTES,
  type SignedFetchOptions,
  serverTimeForRetry,
} from '../../signing/signed-fetch.ts';
import { signedHeaders } from '../../signing/signed-request.ts';
import { agentError } from './agent-client.ts';

export type SocketRequest = {
  /** Below baseUrl, beginning with a slash, query included. */
  path: string;
  headers?: Record<string, string>;
  /** A larger message ends the socket with 1009. */
  maxMessageBytes: number;
  /** Gives up on a socket that is not open yet. */
  signal?: AbortSignal;
};

/**
 * The open socket, paused: `resume` it once somebody listens. Rejects with ApiError: the other side's own
 * refusal, or `upstream_unavailable` when it does not answer.
 */
export type SignedConnect = (request: SocketRequest) => Promise<WebSocket>;

/** A handshake takes no longer; below the deadlines of those who wait for it. */
const HANDSHAKE_TIMEOUT_MS = 10_000;

/** Signs again once when the server says `clock_or_restart`, as for ordinary requests. */
export function createSignedConnect(options: SignedFetchOptions): SignedConnect {
  const { clock } = options;
  return async (request) => {
    const first = await open(options, request, clock.now());
    if (!('status' in first)) return first;
    const serverTimeMs = serverTimeForRetry(first.body, clock.now());
    const last = serverTimeMs === null ? first : await open(options, request, serverTimeMs);
    if (!('status' in last)) return last;
    throw agentError(last.status, parseJson(last.body));
  };
}

type Refusal = { status: number; body: string };

async function open(
  options: SignedFetchOptions,
  request: SocketRequest,
  timestampMs: number,
): Promise<WebSocket | Refusal> {
  // Loaded with the first socket: an idle process does without.
  const ws = await import('ws');
  const url = new URL(options.baseUrl + request.path);
  const signed = await signedHeaders(options, { method: 'GET', url, body: '', timestampMs });
  const agent = options.transport?.agent;
  const socket = new ws.WebSocket(url, {
    ...(agent === undefined ? {} : { agent }),
    headers: { ...request.headers, ...signed },
    handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
    maxPayload: request.maxMessageBytes,
    perMessageDeflate: false,
    followRedirects: false,
  });
  const { promise, resolve, reject } = Promise.withResolvers<WebSocket | Refusal>();
  const giveUp = () => socket.terminate();
  socket.on('error', (error) => reject(unavailable(error)));
  socket.once('unexpected-response', (_sent, response: IncomingMessage) => {
    readRefusal(response).then(resolve, (error) => reject(unavailable(error)));
  });
  socket.once('open', () => {
    socket.pause();
    resolve(socket);
  });
  request.signal?.addEventListener('abort', giveUp, { once: true });
  if (request.signal?.aborted) giveUp();
  try {
    const outcome = await promise;
    if (outcome === socket) pingPeer(socket, options.clock);
    return outcome;
  } finally {
    request.signal?.removeEventListener('abort', giveUp);
  }
}

async function readRefusal(response: IncomingMessage): Promise<Refusal> {
  let body = '';
  response.setEncoding('utf8');
  for await (const part of response) {
    body += part;
    if (body.length > MAX_REFUSAL_BYTES) break;
  }
  response.destroy();
  return { status: response.statusCode ?? 0, body };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function unavailable(cause: unknown): ApiError {
  const message = `The node did not answer (${messageOf(cause)})`;
  return new ApiError('upstream_unavailable', message, { cause });
}
