/** GET /metrics as every process of ours serves it: bounded in number and time. */
import { z } from 'zod';
import { type Clock, withDeadline } from '../runtime/clock.ts';
import { ApiError } from '../runtime/errors.ts';
import type { HttpServer } from './server.ts';

/** Scrapes whose answers are under way; one more is refused with 503. */
export const MAX_SCRAPES = 40;
/** Where the scraper does not say how long it waits. */
const DEFAULT_WAIT_SECONDS = 10;
const MS_PER_SECOND = 1_000;
const RETRY_AFTER_SECONDS = '5';

/** Prometheus says in a header how long it waits; what is no such number counts as absent. */
const Waits = z.coerce.number().positive().max(3_600).catch(DEFAULT_WAIT_SECONDS);

export type ScrapeOptions = {
  clock: Clock;
  contentType: string;
  /** The text format, from memory: it starts nothing and waits for nobody. */
  render(): Promise<string>;
};

/** Registers the route. */
export function registerMetricsRoute(
  server: HttpServer,
  { clock, contentType, render }: ScrapeOptions,
): void {
  let underWay = 0;
  server.get('/metrics', async (request, reply) => {
    if (underWay >= MAX_SCRAPES) throw refusal(`At most ${MAX_SCRAPES} scrapes at a time`);
    underWay += 1;
    reply.raw.once('close', () => {
      underWay -= 1;
    });
    const seconds = Waits.parse(request.headers['x-prometheus-scrape-timeout-seconds']);
    const text = await withDeadline(clock, seconds * MS_PER_SECOND, render()).catch(
      (cause: unknown) => {
        throw refusal('The metrics were not ready in time', cause);
      },
    );
    return reply.type(contentType).send(text);
  });
}

function refusal(message: string, cause?: unknown): ApiError {
  return new ApiError('upstream_unavailable', message, {
    status: 503,
    headers: { 'Retry-After': RETRY_AFTER_SECONDS },
    cause,
  });
}
