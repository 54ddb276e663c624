/** Opens WebSockets with a signed request, from central to gateway and from gateway to agent. */
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
import { type AgentClientOptions, agentError } from './agent-client.ts';

export type SocketRequest = {
  /** Path below baseUrl, beginning with a slash, query included. */
  path: string;
  headers?: Record<string, string>;
  /** A larger message closes the socket with 1009. */
  maxMessageBytes: number;
  /** Cancels the connection attempt; no effect once the socket is open. */
  signal?: AbortSignal;
};

/**
 * Returns the open socket, paused: call `resume` once its listeners are attached. Rejects with ApiError: the other
 * side's error, or `upstream_unavailable` if it does not respond.
 */
export type SignedConnect = (request: SocketRequest) => Promise<WebSocket>;

export type ConnectOptions = SignedFetchOptions & Pick<AgentClientOptions, 'signsFor'>;

/** Time limit of the handshake; shorter than the deadlines of the callers. */
const HANDSHAKE_TIMEOUT_MS = 10_000;

/** Creates a function that opens signed WebSockets. It retries once on `clock_or_restart`, like `createSignedFetch`. */
export function createSignedConnect(options: ConnectOptions): SignedConnect {
  const { clock } = options;
  return async (request) => {
    const first = await open(options, request, clock.now());
    if (!('status' in first)) return first;
    const serverTimeMs = serverTimeForRetry(first.body, clock.now());
    const last = serverTimeMs === null ? first : await open(options, request, serverTimeMs);
    if (!('status' in last)) return last;
    throw agentError(last.status, parseJson(last.body), {
      signsFor: options.signsFor ?? 'node',
      nowMs: clock.now(),
    });
  };
}

type ErrorResponse = { status: number; body: string };

async function open(
  options: SignedFetchOptions,
  request: SocketRequest,
  timestampMs: number,
): Promise<WebSocket | ErrorResponse> {
  // Loaded with the first socket, to save the memory of idle processes.
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
  const { promise, resolve, reject } = Promise.withResolvers<WebSocket | ErrorResponse>();
  const cancel = () => socket.terminate();
  socket.on('error', (error) => reject(unavailable(error)));
  socket.once('unexpected-response', (_sent, response: IncomingMessage) => {
    readErrorResponse(response).then(resolve, (error) => reject(unavailable(error)));
  });
  socket.once('open', () => {
    socket.pause();
    resolve(socket);
  });
  request.signal?.addEventListener('abort', cancel, { once: true });
  if (request.signal?.aborted) cancel();
  try {
    const outcome = await promise;
    if (outcome === socket) pingPeer(socket, options.clock);
    return outcome;
  } finally {
    request.signal?.removeEventListener('abort', cancel);
  }
}

async function readErrorResponse(response: IncomingMessage): Promise<ErrorResponse> {
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
