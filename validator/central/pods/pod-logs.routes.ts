/** GET /pods/{pod_id}/logs: Server-Sent Events (contract 7). */
import type { FastifyRequest } from 'fastify';
import type { HttpServer } from '#shared/http/server.ts';
import { sendSse } from '#shared/http/sse.ts';
import { userOf } from '../auth/identity.ts';
import { PodLogParams, PodLogsQuery } from './pod.schemas.ts';
import type { PodLogs } from './pod-logs.ts';

export type PodLogRoutesDeps = {
  logs: PodLogs;
  /** Whether the credential of a request made earlier still stands. */
  credentialStands(request: FastifyRequest): Promise<boolean>;
};

/** Registers it. */
export function registerPodLogRoutes(api: HttpServer, deps: PodLogRoutesDeps): void {
  api.get(
    '/pods/:pod_id/logs',
    {
      config: { auth: 'user' },
      schema: { tags: ['Pods'], params: PodLogParams, querystring: PodLogsQuery },
    },
    async (request, reply) => {
      const gone = new AbortController();
      reply.raw.once('close', () => gone.abort());
      const lastEventId = request.headers['last-event-id'];
      const frames = await deps.logs.open(
        {
          accountId: userOf(request).accountId,
          podId: request.params.pod_id,
          query: request.query,
          lastEventId: typeof lastEventId === 'string' ? lastEventId : undefined,
          stillAllowed: () => deps.credentialStands(request),
        },
        gone.signal,
      );
      await sendSse(reply, frames);
    },
  );
}
