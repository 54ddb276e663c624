/** How requests travel: plainly within one machine, over TLS 1.3 to an accepted peer everywhere else. */
import type { X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import { isIP } from 'node:net';
import { type Duplex, Readable } from 'node:stream';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import type { Clock } from '../runtime/clock.ts';
import { PeerRefused, type Pin, pinOfCertificate } from './peer.ts';

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

/**
 * `authorities`: those that the system trusts, and the name has to be right. A pin needs neither. `anybody`: whom
 * nothing is told and nothing is believed, but who may be asked who it is.
 */
export type Trust = Pin | 'authorities' | 'anybody';

export type SecureAgentOptions = {
  trust: Trust;
  clock: Clock;
  /** Told of each peer before it is judged: how it shows itself to whoever does not know it yet. */
  onPeer?(certificate: X509Certificate): void;
};

const HANDSHAKE_TIMEOUT_MS = 10_000;
/** An idle connection is closed before the server's own keep-alive time-out, 72 seconds, ends it under a request. */
const IDLE_MS = 30_000;
const MAX_FREE_SOCKETS = 8;

type OnConnected = (error: Error | null, socket?: Duplex) => void;

/**
 * Gives a connection to requests only when its peer was accepted: not a byte of a request reaches another. Each makes
 * a full handshake, so that every one of them shows a certificate.
 */
export function createSecureAgent(options: SecureAgentOptions): Agent {
  const agent = new Agent({
    keepAlive: true,
    timeout: IDLE_MS,
    maxFreeSockets: MAX_FREE_SOCKETS,
    maxCachedSessions: 0,
  });
  Object.assign(agent, {
    createConnection: (to: ConnectionOptions, onConnected: OnConnected) => {
      dial(to, options).then(
        (socket) => onConnected(null, socket),
        (error: Error) => onConnected(error),
      );
    },
  });
  return agent;
}

async function dial(to: ConnectionOptions, options: SecureAgentOptions): Promise<TLSSocket> {
  const { host = '', port } = to;
  const socket = connect({
    host,
    ...(port === undefined ? {} : { port }),
    // An address is no server name (RFC 6066).
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ALPNProtocols: ['http/1.1'],
    minVersion: 'TLSv1.3',
    // Judged below, by pin or authorities: the error then says which, and comes as one of ours.
    rejectUnauthorized: false,
  });
  try {
    await handshake(socket, options.clock);
    refuse(socket, options);
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

async function handshake(socket: TLSSocket, clock: Clock): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const over = new AbortController();
  const gone = () => reject(new Error('the connection was closed during the TLS handshake'));
  socket.once('secureConnect', resolve).once('error', reject).once('close', gone);
  clock
    .sleep(HANDSHAKE_TIMEOUT_MS, over.signal)
    .then(() => reject(new Error(`no TLS handshake within ${HANDSHAKE_TIMEOUT_MS} ms`)))
    .catch(() => undefined);
  try {
    await promise;
  } finally {
    over.abort();
    socket.off('secureConnect', resolve).off('error', reject).off('close', gone);
  }
}

/** Throws PeerRefused unless the peer is whom `trust` asks for. */
function refuse(socket: TLSSocket, { trust, clock, onPeer }: SecureAgentOptions): void {
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) throw new PeerRefused('TLS_UNTRUSTED', 'it shows no certificate');
  onPeer?.(certificate);
  if (trust === 'anybody') return;
  if (trust === 'authorities') {
    if (socket.authorized) return;
    throw new PeerRefused('TLS_UNTRUSTED', String(socket.authorizationError));
  }
  const pin = pinOfCertificate(certificate);
  if (pin !== trust) throw new PeerRefused('TLS_PIN_MISMATCH', `it has ${pin}, not ${trust}`);
  if (certificate.validToDate.getTime() > clock.now()) return;
  throw new PeerRefused('TLS_CERTIFICATE_EXPIRED', `it was valid until ${certificate.validTo}`);
}
