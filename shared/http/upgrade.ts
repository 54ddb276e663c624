/**
 * WebSockets on the paths of ordinary routes. An upgrade request passes the same hooks and schemas as any other
 * request, so it is rejected with the same status and body. The route's handler turns an accepted request into a
 * WebSocket. A browser hides status and body of a rejected upgrade from its page, so an upgrade request of a page is
 * accepted and closed with the error instead.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { WebSocket } from 'ws';
import type { Clock } from '../runtime/clock.ts';
import { ApiError } from '../runtime/errors.ts';
import { pingPeer } from './keep-alive.ts';
import { ServerResponse } from './node-http.ts';
import type { HttpServer } from './server.ts';
import { CLOSE, refusalCloseCode } from './websocket.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route accepts WebSockets; upgrade requests to other routes are rejected before any work. */
    websocket?: true;
  }
  interface FastifyRequest {
    /** Null unless the client requests a WebSocket. */
    upgrade: Upgrade | null;
  }
}

export type Upgrade = {
  /**
   * Responds with 101. The socket is paused: call `resume` once its listeners are attached. A message larger than
   * `maxMessageBytes` closes the socket with 1009. Rejects with ApiError if the client has disconnected or its handshake
   * is incomplete; the handler's error is then the response.
   */
  accept(reply: FastifyReply, options: { maxMessageBytes: number }): Promise<WebSocket>;
};

/** Time for open sockets to complete the closing handshake when the server closes. */
const CLOSE_TIMEOUT_MS = 1_000;
/** Maximum size of a message from a refused client, which has nothing to send. */
const MAX_REFUSED_MESSAGE_BYTES = 1_024;
const KEY = /^[+/0-9A-Za-z]{22}==$/;
const VERSIONS: readonly unknown[] = ['8', '13'];

/**
 * `shouldUpgradeCallback` of `http.createServer`: returns true for WebSocket upgrades. Node handles other upgrades as
 * ordinary requests.
 */
export function wantsWebSocket(request: IncomingMessage): boolean {
  return request.headers.upgrade?.toLowerCase() === 'websocket';
}

/** Adds WebSocket support. Call before adding any other hook. */
export function acceptUpgrades(server: HttpServer, clock: Clock): void {
  const waiting = new WeakMap<IncomingMessage, { socket: Duplex; head: Buffer }>();
  const accepted = new WeakSet<Duplex>();
  const open = new Set<WebSocket>();

  server.server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    waiting.set(request, { socket, head });
    // Without a listener, an error would end the process. The socket's close event follows.
    socket.on('error', () => socket.destroy());
    // A half-closed socket cannot become a WebSocket; one that already is a WebSocket may still send.
    socket.once('end', () => accepted.has(socket) || socket.destroy());
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket);
    response.once('finish', () => socket.end());
    server.routing(request, response);
  });

  server.decorateRequest('upgrade', null);
  server.addHook('onRequest', (request, _, done) => {
    const parts = waiting.get(request.raw);
    if (parts === undefined || request.is404) return done();
    if (request.routeOptions.config.websocket !== true) {
      throw new ApiError('bad_request', 'This path takes no WebSocket', {
        hint: 'Send an ordinary HTTP request.',
      });
    }
    request.upgrade = { accept: (reply, options) => accept(request, reply, { ...parts, options }) };
    return done();
  });

  async function accept(
    request: FastifyRequest,
    reply: FastifyReply,
    {
      socket,
      head,
      options,
    }: { socket: Duplex; head: Buffer; options: { maxMessageBytes: number } },
  ): Promise<WebSocket> {
    requireHandshake(request);
    // Loaded with the first socket, to save the memory of idle processes.
    const { WebSocketServer } = await import('ws');
    if (socket.destroyed) throw new ApiError('client_error', 'The client is gone');
    reply.hijack();
    reply.raw.detachSocket(socket as Socket);
    accepted.add(socket);
    const acceptor = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: options.maxMessageBytes,
    });
    acceptor.on('headers', (lines) => lines.push(`X-Request-Id: ${request.id}`));
    const { promise, resolve, reject } = Promise.withResolvers<WebSocket>();
    socket.once('close', () => reject(new ApiError('client_error', 'The client is gone')));
    acceptor.handleUpgrade(request.raw, socket, head, (socket) => {
      // Otherwise messages that have already arrived would be emitted before listeners are attached.
      socket.pause();
      resolve(socket);
    });
    const webSocket = await promise;
    open.add(webSocket);
    webSocket.once('close', () => open.delete(webSocket));
    // A malformed frame closes the socket with its close code; nothing else is needed.
    webSocket.on('error', () => undefined);
    pingPeer(webSocket, clock);
    return webSocket;
  }

  server.addHook('preClose', async () => {
    const closing = [...open].map((socket) => {
      socket.close(CLOSE.goingAway, 'server_shutdown');
      return new Promise<void>((resolve) => socket.once('close', () => resolve()));
    });
    if (closing.length === 0) return;
    await Promise.race([Promise.all(closing), clock.sleep(CLOSE_TIMEOUT_MS)]);
    for (const socket of open) socket.terminate();
  });
}

/** Rejects an incomplete handshake with our error body, before the library would respond. */
function requireHandshake({ headers }: FastifyRequest): void {
  const version = headers['sec-websocket-version'];
  if (KEY.test(headers['sec-websocket-key'] ?? '') && VERSIONS.includes(version)) return;
  throw new ApiError('bad_request', 'The WebSocket handshake is not complete', {
    hint: 'Send Sec-WebSocket-Key and Sec-WebSocket-Version: 13.',
  });
}

/**
 * Returns a signal that aborts when the client disconnects or the response ends, for either kind of stream; at once if
 * the client has already disconnected. The reason is an ApiError.
 */
export function clientGone(request: FastifyRequest, reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  // An upgraded socket is detached from the reply.
  const ended = request.upgrade === null ? reply.raw : request.raw.socket;
  const leave = () => gone.abort(new ApiError('client_error', 'The client is gone'));
  // A socket that closed during authentication does not emit 'close' again.
  if (ended.destroyed) leave();
  else ended.once('close', leave);
  return gone.signal;
}

/**
 * Rejects the upgrade request of a page with a close frame. Returns false, and does nothing, for other requests. Calls
 * `otherwise` if the handshake is incomplete.
 */
export function refuseInBrowser(
  { request, reply }: { request: FastifyRequest; reply: FastifyReply },
  error: ApiError,
  otherwise: () => void,
): boolean {
  // Browsers always send Origin with a WebSocket handshake; other clients read the status.
  if (!request.upgrade || request.headers.origin === undefined) return false;
  request.upgrade.accept(reply, { maxMessageBytes: MAX_REFUSED_MESSAGE_BYTES }).then(
    (socket) => {
      socket.resume();
      socket.close(refusalCloseCode(error.status), error.code);
    },
    () => reply.sent || otherwise(),
  );
  return true;
}

/** Returns the error for an ordinary request to a path that accepts only WebSockets. */
export function upgradeRequired(): ApiError {
  return new ApiError('client_error', 'This path takes only WebSockets', {
    status: 426,
    hint: 'Connect with a WebSocket client.',
    headers: { Upgrade: 'websocket', Connection: 'Upgrade' },
  });
}
