/** An event stream as the client asked for it: server-sent events, or the same frames over a WebSocket. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type SseSource, sendSse } from './sse.ts';
import { sendFrames } from './websocket/send.ts';

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
