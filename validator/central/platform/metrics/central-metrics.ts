/** Metrics of a process of the central API and of the deployment's backlog, and the listener for scrapes. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { type ReadinessCheck, registerLiveness, registerReadiness } from '#shared/api/readiness.ts';
import { toApiError } from '#shared/http/error-body.ts';
import { type ListenAddress, listenOn } from '#shared/http/listen.ts';
import { registerMetricsRoute } from '#shared/http/scrape.ts';
import { createHttpServer, type HttpServer } from '#shared/http/server.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { ClockTrust } from '#shared/runtime/guarded-clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import { VERSION } from '#shared/runtime/version.ts';
import { clockFamily } from '#shared/telemetry/clock-family.ts';
import { registerFamily } from '#shared/telemetry/family.ts';
import {
  BACKLOG_INTERVAL_MS,
  type Backlog,
  backlogFamilies,
  CENTRAL_PREFIX,
} from './backlog.job.ts';

const MS_PER_SECOND = 1_000;
const SECONDS = [0.005, 0.025, 0.1, 0.5, 2.5, 10, 30];
/** Maximum age of counts that are exported. */
const SHOWN_MS = 3 * BACKLOG_INTERVAL_MS;
/** Label of requests that match no route. Their paths are not used as labels, because they are arbitrary. */
const NO_ROUTE = 'none';
const RENTS = /^\/api\/executors\/(?::[\w]+\/rent|rent-by-spec)$/;
const DONE_BELOW = 400;

export type CentralMetrics = ReturnType<typeof createCentralMetrics>;

/** Creates the metrics registry of a process. Scrapes read only memory. */
export function createCentralMetrics(clock: Clock) {
  const registry = new Registry();
  const registers = [registry];
  const durations = new Histogram({
    name: `${CENTRAL_PREFIX}http_request_duration_seconds`,
    help: 'Duration of requests from their headers to the end of the response, by route. Streams are counted when they end.',
    labelNames: ['method', 'route', 'status'],
    buckets: SECONDS,
    registers,
  });
  const inFlight = new Gauge({
    name: `${CENTRAL_PREFIX}http_requests_in_flight`,
    help: 'Requests and streams in progress, by route.',
    labelNames: ['route'],
    registers,
  });
  const refusals = new Counter({
    name: `${CENTRAL_PREFIX}refusals_total`,
    help: 'Requests that were rejected or failed, by error code.',
    labelNames: ['code'],
    registers,
  });
  const rents = new Counter({
    name: `${CENTRAL_PREFIX}rents_total`,
    help: 'Requests to rent, by result: done, or the error code.',
    labelNames: ['result'],
    registers,
  });
  const unmetered = new Gauge({
    name: `${CENTRAL_PREFIX}unmetered_accounts`,
    help: 'Accounts that the last metering pass of this process could not meter. The log contains their ids.',
    registers,
  });
  // Prometheus computes no increase from a series that begins with the first event.
  rents.inc({ result: 'done' }, 0);
  registerFamily(registry, {
    name: `${CENTRAL_PREFIX}build_info`,
    help: 'Always 1; the label is the version of the program.',
    type: 'gauge',
    labels: ['version'],
    samples: () => [{ labels: { version: VERSION }, value: 1 }],
  });
  let backlog: Backlog | null = null;
  const recent = () =>
    backlog !== null && clock.monotonicMs() - backlog.atMs <= SHOWN_MS ? backlog : null;
  for (const family of backlogFamilies(recent)) registerFamily(registry, family);

  const codes = new WeakMap<FastifyRequest, string>();

  /** Called once per request, even if the client disconnects before the response. */
  function ended(request: FastifyRequest, reply: FastifyReply): void {
    const route = routeOf(request);
    inFlight.dec({ route });
    const labels = { method: request.method, route, status: reply.raw.statusCode };
    durations.observe(labels, reply.elapsedTime / MS_PER_SECOND);
    if (request.method !== 'POST' || !RENTS.test(route)) return;
    const isDone = reply.raw.statusCode < DONE_BELOW;
    rents.inc({ result: isDone ? 'done' : (codes.get(request) ?? 'internal_error') });
  }

  return {
    /** Collects metrics of a server's requests. Must be called before the routes of the server are registered. */
    watch(server: HttpServer): void {
      server.addHook('onRequest', (request, reply, done) => {
        inFlight.inc({ route: routeOf(request) });
        reply.raw.once('close', () => ended(request, reply));
        done();
      });
      server.addHook('onError', async (request, _, error) => {
        const { code } = toApiError(error, request);
        codes.set(request, code);
        refusals.inc({ code });
      });
    },
    /** Must be called once. */
    watchClock(trust: Pick<ClockTrust, 'isSuspect'>): void {
      registerFamily(registry, clockFamily(CENTRAL_PREFIX, trust));
    },
    setUnmetered: (accounts: number): void => unmetered.set(accounts),
    setBacklog(next: Backlog): void {
      backlog = next;
    },
    contentType: registry.contentType,
    /** Returns the metrics in Prometheus' text format. */
    render: () => registry.metrics(),
  };
}

/** Returns the route's template. The path is not used, because it contains ids. */
function routeOf(request: FastifyRequest): string {
  return request.is404 ? NO_ROUTE : (request.routeOptions.url ?? NO_ROUTE);
}

/** No route of this listener accepts a body. */
const BODY_LIMIT_BYTES = 1_024;

/** Listens for scrapes and probes only. Returns null if there is no address. */
export async function listenForScrapes(
  address: ListenAddress | undefined,
  ports: {
    metrics: CentralMetrics;
    /** Served at /readyz. */
    readiness: ReadinessCheck;
    log: Log;
    clock: Clock;
    random: Random;
  },
): Promise<HttpServer | null> {
  if (address === undefined) return null;
  const { metrics, readiness, ...listening } = ports;
  const server = createHttpServer({ ...listening, bodyLimitBytes: BODY_LIMIT_BYTES });
  registerMetricsRoute(server, { ...metrics, clock: ports.clock });
  registerLiveness(server);
  registerReadiness(server, readiness);
  const name = 'CENTRAL_METRICS_LISTEN';
  await listenOn(server, address, { host: name, port: name });
  return server;
}
