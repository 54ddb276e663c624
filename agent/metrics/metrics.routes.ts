/** GET /metrics, public: nothing in it tells of renters. */
import type { HttpServer } from '#shared/http/server.ts';
import type { Metrics } from './metrics.ts';

export function registerMetricsRoutes(
  server: HttpServer,
  { metrics }: { metrics: Pick<Metrics, 'render' | 'contentType'> },
): void {
  server.get('/metrics', async (_request, reply) =>
    reply.type(metrics.contentType).send(await metrics.render()),
  );
}
