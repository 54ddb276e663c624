/** Server-Sent Events, both ends: a bounded writer and a reader. */
import { once } from 'node:events';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { sendFrames } from './websocket.ts';

/** A text is written as it is (it must end its own frame); see `dataFrame`. */
export type SseSource = AsyncIterable<string>;

/** One `data:` frame holding `value` as JSON. */
export function dataFrame(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

/**
 * Streams `source` as the response and resolves when it or the client has ended. Pull-based: while the
 * client does not read, the source is not pulled, so a stalled client costs one frame of memory.
 */
export async function sendSse(reply: FastifyReply, source: SseSource): Promise<void> {
  reply.hijack();
  const response = reply.raw;
  const frames = source[Symbol.asyncIterator]();
  if (response.destroyed) {
    // It would take no frame and never say that it is ready for one.
    await frames.return?.();
    return;
  }
  response.writeHead(200, {
    // In small letters, as the reply's own are: one in each form would be sent twice.
    ...headersSet(reply),
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  });
  response.flushHeaders();
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  gone.signal.addEventListener('abort', () => void frames.return?.());
  try {
    // Nothing but the headers is wanted of a HEAD: pulling frames would keep its connection for nobody.
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

/** Headers set on the reply before it was hijacked (X-Request-Id) belong on the stream too. */
function headersSet(reply: FastifyReply): Record<string, string> {
  const entries = Object.entries(reply.getHeaders());
  return Object.fromEntries(entries.map(([name, value]) => [name, String(value)]));
}

/** A frame longer than this ends the stream: no server of ours sends one. */
const MAX_FRAME_CHARS = 1024 * 1024;

/** The JSON of each `data:` frame of an event stream, in order. Throws SyntaxError on a broken frame. */
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

// MERGED shared/http/event-stream.ts: An event stream as the client asked for it: server-sent events, or the same frames over a WebSocket.
/** Clients have nothing to say on a stream. */
const MAX_CLIENT_MESSAGE_BYTES = 1_024;

/** Resolves when the stream or its client has ended; `source` is returned in any case. */
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
