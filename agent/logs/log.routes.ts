/** GET /v1/pods/:id/logs as server-sent events, and as a WebSocket. */
import { z } from 'zod';
import { LogsQuery, PodId } from '#shared/api/agent/pod.ts';
import { sendStream } from '#shared/http/event-stream.ts';
import type { HttpServer } from '#shared/http/server.ts';
import type { LogService } from './log.service.ts';

export function registerLogRoutes(server: HttpServer, { logs }: { logs: LogService }): void {
  const schema = { params: z.object({ id: PodId }), querystring: LogsQuery };
  const config = { websocket: true } as const;
  server.get('/v1/pods/:id/logs', { config, schema }, async (request, reply) => {
    const frames = await logs.open(request.params.id, request.query);
    await sendStream(request, reply, frames);
  });
}
