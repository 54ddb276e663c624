/** Transports of requests: TLS 1.3 to a verified peer, and plain HTTP for loopback addresses. */
import type { X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import { isIP } from 'node:net';
import { type Duplex, Readable } from 'node:stream';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { type Clock, withDeadline } from '../runtime/clock.ts';
import { PeerRefused, type Pin, pinOfCertificate } from './peer.ts';

/** The subset of fetch's options that our requests use. */
export type OutgoingInit = {
  method: string;
  headers: Record<string, string>;
  body?: string;
  signal?: AbortSignal;
};

export type Transport = {
  /** Rejects like fetch, and with PeerRefused if the peer is not accepted. A redirect also rejects. */
  fetch(url: URL, init: OutgoingInit): Promise<Response>;
  /** Agent for WebSockets; absent for plain transports. */
  agent?: Agent;
  /** Closes idle connections. */
  close(): void;
};

/** Plain HTTP, or HTTPS with fetch's verification. */
export const PLAIN_TRANSPORT: Transport = {
  fetch: (url, init) => fetch(url, { ...init, redirect: 'error' }),
  close: () => undefined,
};

/** Creates a transport for HTTPS only. */
export function createSecureTransport(options: SecureAgentOptions): Transport {
  const agent = createSecureAgent(options);
  return { agent, fetch: (url, init) => send(agent, url, init), close: () => agent.destroy() };
}

/** Statuses for which the `Response` constructor requires a null body. */
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
 * A pin: the peer must have this key. `authorities`: an authority that the system trusts must have signed the
 * certificate for the host name. `anybody`: no verification, only to read the peer's identity; send no secret and do
 * not trust the response.
 */
export type Trust = Pin | 'authorities' | 'anybody';

export type SecureAgentOptions = {
  trust: Trust;
  clock: Clock;
  /** Called with the certificate of each peer before verification, to learn the key of a new peer. */
  onPeer?(certificate: X509Certificate): void;
};

const HANDSHAKE_TIMEOUT_MS = 10_000;
/**
 * Idle time after which connections are closed: before the server's keep-alive timeout of 72 s could close them during
 * a request.
 */
const IDLE_MS = 30_000;
const MAX_FREE_SOCKETS = 8;

type OnConnected = (error: Error | null, socket?: Duplex) => void;

/**
 * Creates an agent whose connections are verified before any request is sent on them. Sessions are not resumed, so
 * every connection presents a certificate.
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
    // An IP address is not a valid server name (RFC 6066).
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ALPNProtocols: ['http/1.1'],
    minVersion: 'TLSv1.3',
    // `verifyPeer` checks the certificate, so that the error is a PeerRefused.
    rejectUnauthorized: false,
  });
  try {
    await handshake(socket, options.clock);
    verifyPeer(socket, options);
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

async function handshake(socket: TLSSocket, clock: Clock): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onClose = () => reject(new Error('the connection was closed during the TLS handshake'));
  socket.once('secureConnect', resolve).once('error', reject).once('close', onClose);
  try {
    await withDeadline(clock, HANDSHAKE_TIMEOUT_MS, promise);
  } finally {
    socket.off('secureConnect', resolve).off('error', reject).off('close', onClose);
  }
}

/** Throws PeerRefused unless the peer satisfies `trust`. */
function verifyPeer(socket: TLSSocket, { trust, clock, onPeer }: SecureAgentOptions): void {
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined)
    throw new PeerRefused('TLS_UNTRUSTED', 'the peer presents no certificate');
  onPeer?.(certificate);
  if (trust === 'anybody') return;
  if (trust === 'authorities') {
    if (socket.authorized) return;
    throw new PeerRefused('TLS_UNTRUSTED', String(socket.authorizationError));
  }
  const pin = pinOfCertificate(certificate);
  if (pin !== trust)
    throw new PeerRefused('TLS_PIN_MISMATCH', `the peer has the pin ${pin} instead of ${trust}`);
  if (certificate.validToDate.getTime() > clock.now()) return;
  throw new PeerRefused(
    'TLS_CERTIFICATE_EXPIRED',
    `the peer’s certificate was valid until ${certificate.validTo}`,
  );
}
