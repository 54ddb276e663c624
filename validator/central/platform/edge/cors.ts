/** CORS: the origins whose web pages may call the API. Credentials are sent in headers, never in cookies. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';

/** Origins as browsers send them (`https://console.example.org`), or `*` for all. */
export type AllowedOrigins = readonly string[];

const EXPOSED = [
  'X-Request-Id',
  'Retry-After',
  'RateLimit',
  'RateLimit-Policy',
  'Idempotent-Replayed',
  'Allow',
  'X-API-Key-Status',
].join(', ');
const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE';
const REQUEST_HEADERS = [
  'Authorization',
  'Content-Type',
  'X-API-Key',
  'X-Source',
  'X-Request-Id',
  'X-Lium-Client-Version',
  'X-Lium-Workspace-Id',
  'Idempotency-Key',
  'Last-Event-ID',
].join(', ');
const PREFLIGHT_LASTS_SECONDS = '600';

/** Adds the headers, and responds to preflight requests before authentication and routing. */
export function installCors(server: HttpServer, origins: AllowedOrigins): void {
  if (origins.length === 0) return;
  server.addHook('onRequest', async (request, reply) => {
    const { origin } = request.headers;
    void reply.header('Vary', 'Origin');
    if (origin === undefined || !isAllowed(origins, origin)) return undefined;
    void reply.headers({
      'Access-Control-Allow-Origin': origins.includes('*') ? '*' : origin,
      'Access-Control-Expose-Headers': EXPOSED,
    });
    return isPreflight(request) ? answerPreflight(reply) : undefined;
  });
}

function isAllowed(origins: AllowedOrigins, origin: string): boolean {
  return origins.includes('*') || origins.includes(origin);
}

function isPreflight({ method, headers }: FastifyRequest): boolean {
  return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
}

/** Responds with a JSON body, because every 2xx response of the API has one. */
function answerPreflight(reply: FastifyReply): FastifyReply {
  return reply
    .headers({
      'Access-Control-Allow-Methods': METHODS,
      'Access-Control-Allow-Headers': REQUEST_HEADERS,
      'Access-Control-Max-Age': PREFLIGHT_LASTS_SECONDS,
    })
    .type('application/json; charset=utf-8')
    .send('{}');
}

/** Origin in the form that browsers send: no path, no slash at the end. */
const Origin = z.union([
  z.literal('*'),
  z
    .string()
    .regex(/^https?:\/\/[a-z0-9.-]+(?::\d{1,5})?$/, 'origins look like https://a.example.org'),
]);

/** Environment variables, which processes add to their configuration schema. */
export const CorsVariables = z.object({
  CENTRAL_CORS_ORIGINS: z
    .string()
    .transform((text) => text.split(',').map((origin) => origin.trim()))
    .pipe(z.array(Origin))
    .optional(),
});

/** Returns no origins if the variable is not set. */
export function corsOriginsFrom(variables: z.output<typeof CorsVariables>): AllowedOrigins {
  return variables.CENTRAL_CORS_ORIGINS ?? [];
}
