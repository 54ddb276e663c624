/** GET /v1/pods/:id/logs as server-sent events. */
import { z } from 'zod';
import { LogsQuery, PodId } from '#shared/agent-api/pod.ts';
import type { HttpServer } from '#shared/http/server.ts';
import { dataFrame, type SseSource, sendSse } from '#shared/http/sse.ts';
import type { LiveFrames } from './keep-alive.ts';
import type { LogService } from './log.service.ts';

export function registerLogRoutes(server: HttpServer, { logs }: { logs: LogService }): void {
  const schema = { params: z.object({ id: PodId }), querystring: LogsQuery };
  server.get('/v1/pods/:id/logs', { schema }, async (request, reply) => {
    const frames = await logs.open(request.params.id, request.query);
    await sendSse(reply, asText(frames));
  });
}

/** Not a generator: leaving it has to reach the frames at once, not after the next of them. */
function asText(frames: LiveFrames): SseSource {
  return {
    [Symbol.asyncIterator]: () => ({
      async next() {
        const { done, value } = await frames.next();
        if (done === true) return { done, value: undefined };
        return { done: false, value: value.map(dataFrame).join('') };
      },
      async return() {
        await frames.return?.();
        return { done: true, value: undefined };
      },
    }),
  };
}
