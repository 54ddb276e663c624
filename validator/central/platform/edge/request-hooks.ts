/** What keeps browsers from doing anything with our answers but read them. */
import type { HttpServer } from '#shared/http/server.ts';
import { invalidField } from '#shared/runtime/errors.ts';
import type { AuthRule } from '../identity.ts';

const ALWAYS = {
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cache-Control': 'no-store',
};
const HSTS = 'max-age=31536000; includeSubDomains';

/** On every answer; a route that serves pages or files replaces what does not fit them. */
export function installSecurityHeaders(server: HttpServer): void {
  server.addHook('onRequest', async (request, reply) => {
    void reply.headers(ALWAYS);
    // Told by a trusted proxy only; over plain HTTP browsers must ignore it anyway.
    if (request.protocol === 'https') void reply.header('Strict-Transport-Security', HSTS);
  });
}

// MERGED validator/central/platform/edge/request-hooks.ts: How large a body each route takes: as much as its fields can need, not as much as the largest one's.
const KIB = 1024;

/** Bytes, by who may call: what anybody can send costs least, an inventory of a host most. */
const LIMITS: Record<AuthRule, number> = {
  none: 16 * KIB,
  session: 16 * KIB,
  portal: 64 * KIB,
  user: 256 * KIB,
  validator: 1024 * KIB,
  'validator-or-account': 1024 * KIB,
  weights: 1024 * KIB,
};

/** For routes registered afterwards; one that states a limit of its own keeps it. */
export function installBodyLimits(server: HttpServer): void {
  server.addHook('onRoute', (route) => {
    route.bodyLimit ??= LIMITS[route.config?.auth ?? 'none'];
  });
}

// MERGED validator/central/platform/edge/request-hooks.ts: Refuses NUL and halves of surrogate pairs in whatever a schema let pass: PostgreSQL has no text with them.
const NUL = '\0';
/** What has none of them in its bytes as sent need not be searched: JSON in UTF-8 holds both by escapes only. */
const ESCAPED = /\\u(?:0000|d[89a-f])/i;
const NUL_IN_URL = '%00';

/** After the schemas, so that a field with rules of its own is refused in its own words. */
export function refuseUnstorable(server: HttpServer): void {
  server.addHook('preHandler', async ({ rawBody, url, body, params, query }) => {
    const inBody = rawBody !== null && ESCAPED.test(Buffer.from(rawBody).toString('latin1'));
    const field =
      (inBody ? unstorableField(body, rawBody) : null) ??
      (url.includes(NUL_IN_URL)
        ? (pathToUnstorable(params, 'path') ?? pathToUnstorable(query, 'query'))
        : null);
    if (field !== null)
      throw invalidField(field, 'NUL and halves of surrogate pairs are not allowed');
  });
}

/** By the name that was sent: schemas rename members. Null when nothing unstorable has passed them. */
function unstorableField(body: unknown, rawBody: Uint8Array): string | null {
  const renamed = pathToUnstorable(body, 'body');
  if (renamed === null) return null;
  const sent: unknown = JSON.parse(Buffer.from(rawBody).toString('utf8'));
  return pathToUnstorable(sent, 'body') ?? renamed;
}

/** Of the first such text in `value`, names of members included; null when there is none. */
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
