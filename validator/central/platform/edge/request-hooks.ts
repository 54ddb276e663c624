/**
 * Hooks that run for every request: security headers, body limits, and the rejection of text that PostgreSQL cannot
 * store.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { HttpServer } from '#shared/http/server.ts';
import { ApiError, invalidField } from '#shared/runtime/errors.ts';
import type { DatabaseHealth } from '../../../database/database-watch.ts';
import { urgently } from '../../../database/urgent.ts';
import type { AuthRule } from '../identity.ts';

const ALWAYS = {
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cache-Control': 'no-store',
};
const HSTS = 'max-age=31536000; includeSubDomains';

/** Sets the headers on every response. Routes that return files override some of these headers. */
export function installSecurityHeaders(server: HttpServer): void {
  server.addHook('onRequest', (request, reply, done) => {
    void reply.headers(ALWAYS);
    // `protocol` is https only behind a trusted proxy. Browsers ignore the header over plain HTTP.
    if (request.protocol === 'https') void reply.header('Strict-Transport-Security', HSTS);
    done();
  });
}

const READS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Refuses requests that change data while the database is damaged, or its file is not in its place. */
export function refuseWritesWhileDamaged(server: HttpServer, { damage }: DatabaseHealth): void {
  server.addHook('onRequest', (request, _, done) => {
    if (damage.problem() === null || READS.has(request.method)) return done();
    throw new ApiError('upstream_unavailable', DAMAGED, {
      status: 503,
      hint: 'Retry when the operator has restored the database. Pods run on and are not charged until then.',
      isExpected: true,
    });
  });
}

const DAMAGED = 'The database of the marketplace is damaged; nothing was changed';

/**
 * Lets the routes with `urgent` use the reserves of the database. Call it before all hooks that use the database.
 */
export function allowReserves(server: HttpServer): void {
  const enter = (request: FastifyRequest, _: FastifyReply, done: () => void) => {
    if (request.routeOptions.config.urgent === true) urgently(done);
    else done();
  };
  server.addHook('onRequest', enter);
  // Reading a body leaves the context.
  server.addHook('preValidation', enter);
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** True for requests that must succeed although connections, disk space or the caller's rate are used up. */
    urgent?: true;
  }
}

const KIB = 1024;

/**
 * Maximum size of a body in bytes, by authentication rule. The limit for validators is higher, because they send
 * inventories of hosts.
 */
const BODY_LIMITS: Record<AuthRule, number> = {
  none: 16 * KIB,
  session: 16 * KIB,
  operator: 16 * KIB,
  portal: 64 * KIB,
  user: 256 * KIB,
  validator: 1024 * KIB,
  'validator-or-account': 1024 * KIB,
  weights: 1024 * KIB,
};

/** Limits the bodies of routes that are registered after this call, unless a route states its own limit. */
export function installBodyLimits(server: HttpServer): void {
  server.addHook('onRoute', (route) => {
    route.bodyLimit ??= BODY_LIMITS[route.config?.auth ?? 'none'];
  });
}

const NUL = '\0';
/**
 * Escapes of NUL and lone surrogates. JSON in UTF-8 can contain these characters only as escapes, so bodies without
 * such an escape are not searched.
 */
const ESCAPED = /\\u(?:0000|d[89a-f])/i;
const NUL_IN_URL = '%00';

/**
 * Rejects NUL and lone surrogates, which PostgreSQL cannot store as text. Runs after schema validation, so that a field
 * with stricter rules is rejected with the message of those rules.
 */
export function refuseUnstorable(server: HttpServer): void {
  server.addHook('preHandler', ({ rawBody, url, body, params, query }, _, done) => {
    const inBody = rawBody !== null && ESCAPED.test(Buffer.from(rawBody).toString('latin1'));
    const field =
      (inBody ? unstorableField(body, rawBody) : null) ??
      (url.includes(NUL_IN_URL)
        ? (pathToUnstorable(params, 'path') ?? pathToUnstorable(query, 'query'))
        : null);
    if (field !== null)
      throw invalidField(field, 'NUL and halves of surrogate pairs are not allowed');
    done();
  });
}

/**
 * Returns the path of the first field that contains NUL or a lone surrogate, with the member names that the client
 * sent, because schemas may rename members. Null if there is none.
 */
function unstorableField(body: unknown, rawBody: Uint8Array): string | null {
  const renamed = pathToUnstorable(body, 'body');
  if (renamed === null) return null;
  const sent: unknown = JSON.parse(Buffer.from(rawBody).toString('utf8'));
  return pathToUnstorable(sent, 'body') ?? renamed;
}

/** Returns the path of the first such text in `value`, member names included; null if there is none. */
function pathToUnstorable(value: unknown, path: string): string | null {
  if (typeof value === 'string') return isStorable(value) ? null : path;
  if (typeof value !== 'object' || value === null) return null;
  for (const [name, member] of Object.entries(value)) {
    const found = isStorable(name) ? pathToUnstorable(member, `${path}.${name}`) : path;
    if (found !== null) return found;
  }
  return null;
}

function isStorable(text: string): boolean {
  return !text.includes(NUL) && text.isWellFormed();
}
