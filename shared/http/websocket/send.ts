/** Sends on a WebSocket no faster than the other side takes it. */
import type { Writable } from 'node:stream';
import type { WebSocket } from 'ws';
import { messageOf } from '../../runtime/errors.ts';
import type { Log } from '../../runtime/log.ts';
import { CLOSE } from './close-codes.ts';

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
