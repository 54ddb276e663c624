/** What the host and its pods use just now (design, "The agent's HTTP interface"); read from memory. */
import { z } from 'zod';
import { HostMetrics, PodMetrics } from '#shared/api/agent/metrics.ts';
import { PodId } from '#shared/api/agent/pod.ts';
import type { HttpServer } from '#shared/http/server.ts';
import type { Samples } from './samples.ts';

export function registerSampleRoutes(
  server: HttpServer,
  { samples }: { samples: Pick<Samples, 'host' | 'pod'> },
): void {
  server.get('/v1/metrics/host', { schema: { response: { 200: HostMetrics } } }, async () =>
    samples.host(),
  );
  server.get(
    '/v1/pods/:id/metrics',
    { schema: { params: z.object({ id: PodId }), response: { 200: PodMetrics } } },
    async ({ params }) => samples.pod(params.id),
  );
}
