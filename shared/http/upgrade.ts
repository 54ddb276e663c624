/**
 * WebSockets on the paths of ordinary routes: an upgrade request passes the same hooks and schemas as any
 * other, so that it is refused with the same status and body, and becomes a WebSocket only in its handler.
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
import { CLOSE } from './websocket.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether the route takes WebSockets; an upgrade request to any other is refused before any work. */
    websocket?: true;
  }
  interface FastifyRequest {
    /** Null unless the client wants a WebSocket. */
    upgrade: Upgrade | null;
  }
}

export type Upgrade = {
  /**
   * Answers 101; the socket is paused: `resume` it once somebody listens. A larger message than `maxMessageBytes` ends the socket with 1009. Rejects with ApiError
   * when the client is gone or its handshake is none; then the handler's error is the answer.
   */
  accept(reply: FastifyReply, options: { maxMessageBytes: number }): Promise<WebSocket>;
};

/** What an open socket may take to say goodbye when the server closes. */
const GOODBYE_MS = 1_000;
const KEY = /^[+/0-9A-Za-z]{22}==$/;
const VERSIONS: readonly unknown[] = ['8', '13'];

/** For `http.createServer`: anything but a WebSocket is answered as if no upgrade had been asked for. */
export function wantsWebSocket(request: IncomingMessage): boolean {
  return request.headers.upgrade?.toLowerCase() === 'websocket';
}

/** Call before any other hook is added. */
export function acceptUpgrades(server: HttpServer, clock: Clock): void {
  const waiting = new WeakMap<IncomingMessage, { socket: Duplex; head: Buffer }>();
  const accepted = new WeakSet<Duplex>();
  const open = new Set<WebSocket>();

  server.server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    waiting.set(request, { socket, head });
    // Its end follows; without a listener it would be the process's.
    socket.on('error', () => socket.destroy());
    // Half closed it is of no use to a WebSocket; only an open one may have something left to say.
    socket.once('end', () => accepted.has(socket) || socket.destroy());
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket);
    response.once('finish', () => socket.end());
    server.routing(request, response);
  });

  server.decorateRequest('upgrade', null);
  server.addHook('onRequest', async (request) => {
    const parts = waiting.get(request.raw);
    if (parts === undefined || request.is404) return;
    if (request.routeOptions.config.websocket !== true) {
      throw new ApiError('bad_request', 'This path takes no WebSocket', {
        hint: 'Send an ordinary HTTP request.',
      });
    }
    request.upgrade = { accept: (reply, options) => accept(request, reply, { ...parts, options }) };
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
    // Loaded with the first socket: an idle process does without.
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
      // What the client has sent already would otherwise be read before anybody listens.
      socket.pause();
      resolve(socket);
    });
    const webSocket = await promise;
    open.add(webSocket);
    webSocket.once('close', () => open.delete(webSocket));
    // A broken frame ends the socket with its code; that is no event of ours.
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
    await Promise.race([Promise.all(closing), clock.sleep(GOODBYE_MS)]);
    for (const socket of open) socket.terminate();
  });
}

/** What the library would answer in words of its own. */
function requireHandshake({ headers }: FastifyRequest): void {
  const version = headers['sec-websocket-version'];
  if (KEY.test(headers['sec-websocket-key'] ?? '') && VERSIONS.includes(version)) return;
  throw new ApiError('bad_request', 'The WebSocket handshake is not complete', {
    hint: 'Send Sec-WebSocket-Key and Sec-WebSocket-Version: 13.',
  });
}

/**
 * Aborts when the client has gone or its answer is through, whichever kind of stream it asked for; at once when
 * it left while the request was on its way here. The reason is an ApiError.
 */
export function clientGone(request: FastifyRequest, reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  // The reply has nothing to do with the socket any more once that has become a WebSocket.
  const ended = request.upgrade === null ? reply.raw : request.raw.socket;
  const leave = () => gone.abort(new ApiError('client_error', 'The client is gone'));
  // What closed during authentication has told it already, and does not tell it again.
  if (ended.destroyed) leave();
  else ended.once('close', leave);
  return gone.signal;
}

/** The refusal of an ordinary request to a path that takes nothing but WebSockets. */
export function upgradeRequired(): ApiError {
  return new ApiError('client_error', 'This path takes only WebSockets', {
    status: 426,
    hint: 'Connect with a WebSocket client.',
    headers: { Upgrade: 'websocket', Connection: 'Upgrade' },
  });
}
