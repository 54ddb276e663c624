/** GET /metrics: a bounded number of concurrent scrapes, each with a deadline. */
import { z } from 'zod';
import { type Clock, withDeadline } from '../runtime/clock.ts';
import { ApiError } from '../runtime/errors.ts';
import type { HttpServer } from './server.ts';

/** Maximum concurrent scrapes; further ones get 503. */
export const MAX_SCRAPES = 40;
/** Deadline if the scraper sends no timeout. */
const DEFAULT_WAIT_SECONDS = 10;
const MS_PER_SECOND = 1_000;
const RETRY_AFTER_SECONDS = '5';

/** Prometheus sends its timeout in a header; an invalid value is ignored. */
const Timeout = z.coerce.number().positive().max(3_600).catch(DEFAULT_WAIT_SECONDS);

export type ScrapeOptions = {
  clock: Clock;
  contentType: string;
  /** Renders the text format from memory, without I/O. */
  render(): Promise<string>;
};

export function registerMetricsRoute(
  server: HttpServer,
  { clock, contentType, render }: ScrapeOptions,
): void {
  let active = 0;
  server.get('/metrics', async (request, reply) => {
    if (active >= MAX_SCRAPES) throw unavailable(`At most ${MAX_SCRAPES} scrapes at a time`);
    active += 1;
    reply.raw.once('close', () => {
      active -= 1;
    });
    const seconds = Timeout.parse(request.headers['x-prometheus-scrape-timeout-seconds']);
    const text = await withDeadline(clock, seconds * MS_PER_SECOND, render()).catch(
      (cause: unknown) => {
        throw unavailable('The metrics were not ready in time', cause);
      },
    );
    return reply.type(contentType).send(text);
  });
}

function unavailable(message: string, cause?: unknown): ApiError {
  return new ApiError('upstream_unavailable', message, {
    status: 503,
    headers: { 'Retry-After': RETRY_AFTER_SECONDS },
    cause,
  });
}
