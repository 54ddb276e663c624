/** Server-Sent Events: a bounded writer and a reader; the writer can also use a WebSocket. */
import { once } from 'node:events';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { sendFrames } from './websocket.ts';

/** Complete frames, each ending with a blank line; see `dataFrame`. */
export type SseSource = AsyncIterable<string>;

/** Returns one `data:` frame with `value` as JSON. */
export function dataFrame(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

/**
 * Streams `source` as the response. Resolves when the source ends or the client disconnects. The source is pulled only
 * while the client reads, so a stalled client costs one frame of memory.
 */
export async function sendSse(reply: FastifyReply, source: SseSource): Promise<void> {
  reply.hijack();
  const response = reply.raw;
  const frames = source[Symbol.asyncIterator]();
  if (response.destroyed) {
    // A destroyed response accepts no frame and never emits 'drain'.
    await frames.return?.();
    return;
  }
  response.writeHead(200, {
    // In lower case, like the reply's headers; otherwise both spellings would be sent.
    ...replyHeaders(reply),
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  });
  response.flushHeaders();
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  gone.signal.addEventListener('abort', () => void frames.return?.());
  try {
    // A HEAD request gets the headers only.
    while (reply.request.method !== 'HEAD') {
      const next = await frames.next();
      if (next.done === true || gone.signal.aborted) break;
      if (!response.write(next.value)) await once(response, 'drain', { signal: gone.signal });
    }
  } catch (error) {
    if (!gone.signal.aborted)
      reply.log.warn({ err: error, request_id: reply.request.id }, 'event stream ended early');
  } finally {
    await frames.return?.();
    response.end();
  }
}

/** Headers set before the reply was hijacked, such as X-Request-Id. */
function replyHeaders(reply: FastifyReply): Record<string, string> {
  const entries = Object.entries(reply.getHeaders());
  return Object.fromEntries(entries.map(([name, value]) => [name, String(value)]));
}

/** Length at which a frame ends the stream with an error; our servers send shorter ones. */
const MAX_FRAME_CHARS = 1024 * 1024;

/** Yields the JSON of each `data:` frame in order. Throws SyntaxError on a malformed frame. */
export async function* readSse(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<unknown> {
  const decoder = new TextDecoder();
  let pending = '';
  for await (const chunk of body) {
    pending += decoder.decode(chunk, { stream: true });
    for (;;) {
      const end = pending.indexOf('\n\n');
      if (end === -1) break;
      const lines = pending.slice(0, end).split('\n');
      pending = pending.slice(end + 2);
      const data = lines.filter((line) => line.startsWith('data:')).map((line) => line.slice(5));
      if (data.length > 0) yield JSON.parse(data.join('\n'));
    }
    if (pending.length > MAX_FRAME_CHARS) throw new SyntaxError('event stream frame too long');
  }
}

/** Maximum size of a client's message; small, because clients send no messages on a stream. */
const MAX_CLIENT_MESSAGE_BYTES = 1_024;

/**
 * Sends an event stream as the client requested it: as Server-Sent Events, or as messages of a WebSocket. Resolves when
 * the source ends or the client disconnects; `source` is closed in either case.
 */
export async function sendStream(
  request: FastifyRequest,
  reply: FastifyReply,
  source: SseSource,
): Promise<void> {
  if (request.upgrade === null) return sendSse(reply, source);
  const options = { maxMessageBytes: MAX_CLIENT_MESSAGE_BYTES };
  const socket = await request.upgrade.accept(reply, options).catch(async (error: unknown) => {
    await source[Symbol.asyncIterator]().return?.();
    throw error;
  });
  await sendFrames(socket, source, {
    connection: request.raw.socket,
    log: request.log.child({ request_id: request.id }),
  });
}
