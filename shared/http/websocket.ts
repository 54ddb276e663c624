/** Sends on a WebSocket no faster than the other side takes it. */
import type { Writable } from 'node:stream';
import type { WebSocket } from 'ws';
import { messageOf } from '../runtime/errors.ts';
import type { Log } from '../runtime/log.ts';

/** Bytes waiting for the other side from which on the sender waits too. */
export const MAX_UNSENT_BYTES = 64 * 1024;

/** Resolves when there is room for more. Rejects when the socket is closed. */
export async function sendMessage(socket: WebSocket, data: string | Uint8Array): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.send(data, { binary: typeof data !== 'string' }, (error) => {
    if (error) reject(error);
    else resolve();
  });
  if (socket.bufferedAmount > MAX_UNSENT_BYTES) return promise;
  // Nobody waits for this one; its failure is told by the socket's close.
  promise.catch(() => undefined);
}

/**
 * The frames of an event stream, a text message each with its JSON; then the socket is closed. Pull-based:
 * what a stalled client has not taken is not fetched. The client has nothing to say here: a message ends it.
 * `connection` is the socket's own: what came together is written to it together.
 */
export async function sendFrames(
  socket: WebSocket,
  source: AsyncIterable<string>,
  { connection, log }: { connection: Writable; log: Pick<Log, 'warn'> },
): Promise<void> {
  const frames = source[Symbol.asyncIterator]();
  const gone = new AbortController();
  socket.once('close', () => gone.abort());
  gone.signal.addEventListener('abort', () => void frames.return?.());
  socket.once('message', () => socket.close(CLOSE.invalid, 'no_messages_expected'));
  if (socket.readyState !== socket.OPEN) gone.abort();
  socket.resume();
  try {
    for (;;) {
      const next = await frames.next();
      if (next.done === true || gone.signal.aborted) break;
      await sendTogether(socket, connection, messagesOf(next.value));
    }
    socket.close(CLOSE.normal);
  } catch (error) {
    if (!gone.signal.aborted) log.warn({ detail: messageOf(error) }, 'frames ended early');
    socket.close(CLOSE.failed, 'upstream_unavailable');
  } finally {
    await frames.return?.();
  }
}

/** One write for all of them instead of one each; waits for room behind the last. */
async function sendTogether(
  socket: WebSocket,
  connection: Writable,
  messages: readonly string[],
): Promise<void> {
  connection.cork();
  const sent = messages.map((message) => sendMessage(socket, message));
  connection.uncork();
  await Promise.all(sent);
}

const PREFIX = 'data: ';

/** JSON holds no line break of its own, so that a blank line always ends a frame. */
function messagesOf(text: string): string[] {
  const frames = text.split('\n\n').filter((frame) => frame.startsWith(PREFIX));
  return frames.map((frame) => frame.slice(PREFIX.length));
}

/** Why a WebSocket ends: the codes of RFC 6455 7.4 that we use; clients key on them. Pure. */

export const CLOSE = {
  /** The stream or the process has come to its end. */
  normal: 1000,
  /** The server stops. */
  goingAway: 1001,
  /** A message that is not one of the route's own. */
  invalid: 1008,
  /** A message above the bound. */
  tooBig: 1009,
  /** The other side failed: it may be tried again. */
  failed: 1011,
} as const;

/** Codes that say how a socket ended and may not be sent. */
const NO_STATUS = 1005;

/** The code to pass on to the other side of a relay for one that arrived; a broken socket is our failure. */
export function relayedCloseCode(code: number): number {
  if (code === NO_STATUS) return CLOSE.normal;
  const sendable = (code >= 1000 && code <= 1014 && code !== 1004 && code !== 1006) || code >= 3000;
  return sendable && code <= 4999 ? code : CLOSE.failed;
}

// MERGED shared/http/websocket.ts: Joins two WebSockets: messages, backpressure and the end pass from each to the other.
export type RelayObserver = { toFar(bytes: number): void; toNear(bytes: number): void };

const NOBODY: RelayObserver = { toFar: () => undefined, toNear: () => undefined };

/** Takes two paused sockets. `passed` is told of every message's size. Resolves when both have closed. */
export async function relayWebSockets(
  near: WebSocket,
  far: WebSocket,
  passed = NOBODY,
): Promise<void> {
  const closed = Promise.all([pass(near, far, passed.toFar), pass(far, near, passed.toNear)]);
  near.resume();
  far.resume();
  await closed;
}

/** One direction. Whoever does not take what it is sent stops the reading of the other. */
function pass(from: WebSocket, to: WebSocket, passed: (bytes: number) => void): Promise<void> {
  from.on('message', (data: Buffer, isBinary: boolean) => {
    passed(data.length);
    to.send(data, { binary: isBinary }, () => {
      if (from.isPaused && to.bufferedAmount <= MAX_UNSENT_BYTES) from.resume();
    });
    if (to.bufferedAmount > MAX_UNSENT_BYTES) from.pause();
  });
  return new Promise((resolve) => {
    const end = (code: number, reason: Buffer) => {
      // Its goodbye could not be read while it is paused.
      if (to.isPaused) to.resume();
      to.close(relayedCloseCode(code), reason);
      resolve();
    };
    if (from.readyState === from.CLOSED) end(1006, Buffer.alloc(0));
    else from.once('close', end);
  });
}
