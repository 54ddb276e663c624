/** GET /v1/pods/:id/logs as server-sent events. */
import { z } from 'zod';
import { LogsQuery, PodId } from '#shared/agent-api/pod.ts';
import type { HttpServer } from '#shared/http/server.ts';
import { sendSse } from '#shared/http/sse.ts';
import type { LogService } from './log.service.ts';

export function registerLogRoutes(server: HttpServer, { logs }: { logs: LogService }): void {
  const schema = { params: z.object({ id: PodId }), querystring: LogsQuery };
  server.get('/v1/pods/:id/logs', { schema }, async (request, reply) => {
    const frames = await logs.open(request.params.id, request.query);
    await sendSse(reply, frames);
  });
}
