/** How requests travel: plainly within one machine, over TLS 1.3 to an accepted peer everywhere else. */
import type { IncomingMessage } from 'node:http';
import { type Agent, request as httpsRequest } from 'node:https';
import { Readable } from 'node:stream';
import { createSecureAgent, type SecureAgentOptions } from './secure-agent.ts';

/** What requests of ours need of fetch. */
export type OutgoingInit = {
  method: string;
  headers: Record<string, string>;
  body?: string;
  signal?: AbortSignal;
};

export type Transport = {
  /** Rejects as fetch does, and with PeerRefused in front of a peer that is not accepted. No redirect is followed. */
  fetch(url: URL, init: OutgoingInit): Promise<Response>;
  /** For WebSockets; absent: Node's own, for plain ones. */
  agent?: Agent;
  /** Ends idle connections. */
  close(): void;
};

/** Plain HTTP, and HTTPS as fetch does it. */
export const PLAIN_TRANSPORT: Transport = {
  fetch: (url, init) => fetch(url, { ...init, redirect: 'error' }),
  close: () => undefined,
};

/** HTTPS alone. */
export function createSecureTransport(options: SecureAgentOptions): Transport {
  const agent = createSecureAgent(options);
  return { agent, fetch: (url, init) => send(agent, url, init), close: () => agent.destroy() };
}

/** Statuses of answers without a body, which `Response` insists on. */
const BODILESS: readonly number[] = [204, 205, 304];

function send(agent: Agent, url: URL, init: OutgoingInit): Promise<Response> {
  const { method, headers, body, signal } = init;
  const { promise, resolve, reject } = Promise.withResolvers<Response>();
  if (signal?.aborted) return Promise.reject(signal.reason);
  const request = httpsRequest(url, { agent, method, headers });
  let answer: IncomingMessage | null = null;
  const giveUp = () => {
    reject(signal?.reason);
    answer?.destroy(signal?.reason);
    request.destroy();
  };
  signal?.addEventListener('abort', giveUp, { once: true });
  request.on('error', reject);
  request.once('close', () => signal?.removeEventListener('abort', giveUp));
  request.once('response', (response) => {
    answer = response;
    try {
      resolve(toResponse(response));
    } catch (error) {
      response.destroy();
      reject(error);
    }
  });
  request.end(body);
  return promise;
}

function toResponse(response: IncomingMessage): Response {
  const status = response.statusCode ?? 0;
  if (status >= 300 && status < 400 && response.headers.location !== undefined) {
    throw new TypeError(`unexpected redirect to ${response.headers.location}`);
  }
  const headers = new Headers();
  for (const [name, value] of Object.entries(response.headers)) {
    for (const each of [value ?? []].flat()) headers.append(name, each);
  }
  if (BODILESS.includes(status)) {
    response.resume();
    return new Response(null, { status, headers });
  }
  return new Response(Readable.toWeb(response) as ReadableStream<Uint8Array>, { status, headers });
}
