/** GET /metrics: on the main listener without what tells of renters, on one of the provider's own with all. */

import { registerScrape } from '#shared/http/scrape.ts';
import type { HttpServer } from '#shared/http/server.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Metrics } from './metrics.ts';

export function registerMetricsRoutes(
  server: HttpServer,
  deps: {
    clock: Clock;
    metrics: Pick<Metrics, 'render' | 'renderAll' | 'contentType'>;
    /** Whether the listener is the provider's own. */
    isOwn: boolean;
  },
): void {
  const { clock, metrics, isOwn } = deps;
  const { contentType, render, renderAll } = metrics;
  registerScrape(server, { clock, contentType, render: isOwn ? renderAll : render });
}
