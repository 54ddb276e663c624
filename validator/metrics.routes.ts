/** GET /metrics, public: figures of the validator, none of a single executor. */
import type { HttpServer } from '#shared/http/server.ts';
import type { ValidatorMetrics } from './metrics.ts';

export function registerMetricsRoutes(
  server: HttpServer,
  { metrics }: { metrics: Pick<ValidatorMetrics, 'render' | 'contentType'> },
): void {
  server.get('/metrics', async (_request, reply) =>
    reply.type(metrics.contentType).send(await metrics.render()),
  );
}
