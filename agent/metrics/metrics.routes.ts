/** GET /metrics, /v1/metrics/host, /v1/metrics/history and /v1/pods/{id}/metrics; all answer from memory. */
import { z } from 'zod';
import { SampleHistory, SampleHistoryQuery } from '#shared/api/agent/metric-history.ts';
import { HostMetrics, PodMetrics } from '#shared/api/agent/metrics.ts';
import { PodId } from '#shared/api/agent/pod.ts';
import { registerMetricsRoute } from '#shared/http/scrape.ts';
import type { HttpServer } from '#shared/http/server.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Metrics } from './metrics.ts';
import type { SampleHistories } from './sample-history.ts';
import type { Samples } from './samples.ts';

/**
 * Registers the metrics. The main listener omits those that identify renters; the provider's separate listener serves
 * all.
 */
export function registerMetricsRoutes(
  server: HttpServer,
  deps: {
    clock: Clock;
    metrics: Pick<Metrics, 'render' | 'renderAll' | 'contentType'>;
    /** The listener is the provider's separate one. */
    isSeparate: boolean;
  },
): void {
  const { clock, metrics, isSeparate } = deps;
  const { contentType, render, renderAll } = metrics;
  registerMetricsRoute(server, { clock, contentType, render: isSeparate ? renderAll : render });
}

export function registerSampleRoutes(
  server: HttpServer,
  deps: { samples: Pick<Samples, 'host' | 'pod'>; history: Pick<SampleHistories, 'read'> },
): void {
  const { samples, history } = deps;
  server.get(
    '/v1/metrics/history',
    { schema: { querystring: SampleHistoryQuery, response: { 200: SampleHistory } } },
    async ({ query }) => history.read(query),
  );
  server.get('/v1/metrics/host', { schema: { response: { 200: HostMetrics } } }, async () =>
    samples.host(),
  );
  server.get(
    '/v1/pods/:id/metrics',
    { schema: { params: z.object({ id: PodId }), response: { 200: PodMetrics } } },
    async ({ params }) => samples.pod(params.id),
  );
}
