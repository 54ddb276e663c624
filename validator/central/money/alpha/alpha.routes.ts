/** /balance/…/alpha: open to everybody (specification, Endpoints). */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import { AlphaQuote, AlphaQuoteQuery, AlphaSubnet } from './alpha.schemas.ts';
import type { Alpha } from './alpha.service.ts';

const tags = ['Balance'];
const config = { auth: 'none' } as const;

/** Registers them. */
export function registerAlphaRoutes(api: HttpServer, alpha: Alpha): void {
  api.get(
    '/balance/convert/alpha',
    { config, schema: { tags, querystring: AlphaQuoteQuery, response: { 200: AlphaQuote } } },
    (request) => alpha.quote(request.query),
  );
  api.get(
    '/balance/alpha/subnets',
    { config, schema: { tags, response: { 200: z.array(AlphaSubnet) } } },
    () => alpha.subnets(),
  );
}
