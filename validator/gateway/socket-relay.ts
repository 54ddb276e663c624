/** Relays WebSockets to agents: signed anew, messages, backpressure and close codes passed on both ways. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { SignedConnect } from '#shared/api/agent/connect.ts';
import type { ExecutorToCheck } from '#shared/api/central/validator-routes.ts';
import { clientGone } from '#shared/http/upgrade.ts';
import { joinWebSockets } from '#shared/http/websocket.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { createCounter } from '#shared/runtime/semaphore.ts';

/** Sockets relayed at a time, to one executor and in all; each holds two connections. */
export const MAX_SOCKETS_PER_EXECUTOR = 200;
const MAX_SOCKETS = 1_000;
/** The longest message of any route: a log line of 64 KiB as JSON. */
const MAX_MESSAGE_BYTES = 1024 * 1024;
const RETRY_AFTER_SECONDS = '5';

export type SocketRelay = ReturnType<typeof createSocketRelay>;

export function createSocketRelay(connectTo: (executor: ExecutorToCheck) => SignedConnect) {
  const seats = createCounter(MAX_SOCKETS_PER_EXECUTOR, MAX_SOCKETS);

  /** Resolves when both sides have closed. A refusal of the agent is thrown, and so answered as it came. */
  return async (
    request: FastifyRequest,
    reply: FastifyReply,
    { executor, path }: { executor: ExecutorToCheck; path: string },
  ): Promise<void> => {
    if (request.upgrade === null) throw new Error('the request is no upgrade');
    if (!seats.take(executor.id)) {
      throw new ApiError('rate_limited', 'There are too many streams to this node', {
        headers: { 'Retry-After': RETRY_AFTER_SECONDS },
      });
    }
    const signal = clientGone(request, reply);
    try {
      const far = await connectTo(executor)({
        path,
        headers: { 'x-request-id': request.id },
        maxMessageBytes: MAX_MESSAGE_BYTES,
        signal,
      });
      const options = { maxMessageBytes: MAX_MESSAGE_BYTES };
      const near = await request.upgrade.accept(reply, options).catch((error: unknown) => {
        far.terminate();
        throw error;
      });
      await joinWebSockets(near, far);
    } finally {
      seats.release(executor.id);
    }
  };
}
