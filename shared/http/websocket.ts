/** WebSockets: sending with backpressure, close codes, relays between two sockets. */
import type { Writable } from 'node:stream';
import type { WebSocket } from 'ws';
import { messageOf } from '../runtime/errors.ts';
import type { Log } from '../runtime/log.ts';

/** The close codes in use (RFC 6455 7.4). Clients depend on them. */
export const CLOSE = {
  /** The stream or its process has ended. */
  normal: 1000,
  /** The server is stopping. */
  goingAway: 1001,
  /** A message that the route does not accept. */
  invalid: 1008,
  /** A message above the size limit. */
  tooBig: 1009,
  /** The other side of a relay failed; a retry may succeed. */
  failed: 1011,
} as const;

/**
 * Code with which a server closes a socket that it has accepted only to refuse it: 4000 + HTTP status, such as 4401. The
 * reason of the close frame is the error code.
 */
export function refusalCloseCode(status: number): number {
  return 4000 + status;
}

/** Node's code for a close frame without a code; it must not be sent. */
const NO_STATUS = 1005;

/** Unsent bytes above which senders wait. */
export const MAX_UNSENT_BYTES = 64 * 1024;

/** Sends a message and resolves when the socket can accept more. Rejects if it closes while waiting. */
export async function sendMessage(socket: WebSocket, data: string | Uint8Array): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.send(data, { binary: typeof data !== 'string' }, (error) => {
    if (error) reject(error);
    else resolve();
  });
  if (socket.bufferedAmount > MAX_UNSENT_BYTES) return promise;
  // Not awaited: a failure also closes the socket.
  promise.catch(() => undefined);
}

/**
 * Sends the JSON of each frame of an event stream as a text message, then closes the socket. The source is pulled only
 * while the client reads. A message from the client closes the socket. `connection` is the underlying connection;
 * messages that arrive together are written together.
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
    if (!gone.signal.aborted) log.warn({ detail: messageOf(error) }, 'event stream ended early');
    socket.close(CLOSE.failed, 'upstream_unavailable');
  } finally {
    await frames.return?.();
  }
}

/** Sends the messages in one write, and waits until the socket can accept more. */
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

/** Returns the messages of the frames in `text`. JSON contains no line breaks, so a blank line always ends a frame. */
function messagesOf(text: string): string[] {
  const frames = text.split('\n\n').filter((frame) => frame.startsWith(PREFIX));
  return frames.map((frame) => frame.slice(PREFIX.length));
}

/** Returns the close code to send to the other side of a relay. 1005 (no code) becomes 1000; any other
 * code that must not be sent becomes 1011. */
export function relayedCloseCode(code: number): number {
  if (code === NO_STATUS) return CLOSE.normal;
  const sendable = (code >= 1000 && code <= 1014 && code !== 1004 && code !== 1006) || code >= 3000;
  return sendable && code <= 4999 ? code : CLOSE.failed;
}

/** Receives the size of every relayed message. */
export type RelayObserver = { toFar(bytes: number): void; toNear(bytes: number): void };

const NO_OBSERVER: RelayObserver = { toFar: () => undefined, toNear: () => undefined };

/** Relays messages, backpressure and the close between two paused sockets. Resolves when both have closed. */
export async function relayWebSockets(
  near: WebSocket,
  far: WebSocket,
  observer = NO_OBSERVER,
): Promise<void> {
  const closed = Promise.all([relay(near, far, observer.toFar), relay(far, near, observer.toNear)]);
  near.resume();
  far.resume();
  await closed;
}

/** Relays one direction. While the receiver is behind, the sender is not read. */
function relay(from: WebSocket, to: WebSocket, onMessage: (bytes: number) => void): Promise<void> {
  from.on('message', (data: Buffer, isBinary: boolean) => {
    onMessage(data.length);
    to.send(data, { binary: isBinary }, () => {
      if (from.isPaused && to.bufferedAmount <= MAX_UNSENT_BYTES) from.resume();
    });
    if (to.bufferedAmount > MAX_UNSENT_BYTES) from.pause();
  });
  return new Promise((resolve) => {
    const end = (code: number, reason: Buffer) => {
      // A paused socket could not receive the close frame of its peer.
      if (to.isPaused) to.resume();
      to.close(relayedCloseCode(code), reason);
      resolve();
    };
    if (from.readyState === from.CLOSED) end(1006, Buffer.alloc(0));
    else from.once('close', end);
  });
}
