/** What keeps browsers from doing anything with our answers but read them. */
import type { HttpServer } from '#shared/http/server.ts';

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
