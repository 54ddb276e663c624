/** A plain listener for scrapes of the central API, and nothing else. */
import { listenOn, type PlainAddress } from '#shared/http/listen.ts';
import { registerScrape } from '#shared/http/scrape.ts';
import { createHttpServer, type HttpServer } from '#shared/http/server.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { CentralMetrics } from './central-metrics.ts';

/** Nothing there takes a body. */
const BODY_LIMIT_BYTES = 1_024;

/** Null where nobody is to scrape. */
export async function listenForScrapes(
  address: PlainAddress | undefined,
  ports: { metrics: CentralMetrics; log: Log; clock: Clock; random: Random },
): Promise<HttpServer | null> {
  if (address === undefined) return null;
  const { metrics, ...listening } = ports;
  const server = createHttpServer({ ...listening, bodyLimitBytes: BODY_LIMIT_BYTES });
  registerScrape(server, { ...metrics, clock: ports.clock });
  const name = 'CENTRAL_METRICS_LISTEN';
  await listenOn(server, address, { host: name, port: name });
  return server;
}
