/** Public quotes of US dollars in alpha tokens: GET /balance/convert/alpha and GET /balance/alpha/subnets. */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { AlphaRates } from '../../platform/ports.ts';
import { AlphaQuote, AlphaQuoteQuery, AlphaSubnet } from './alpha.schemas.ts';

/** Smallest parts of one token. */
const TOKEN_PARTS = 1e9;

const tags = ['Balance'];
const config = { auth: 'none' } as const;

/** Registers the routes. With `rates` null, both answer 503 `upstream_unavailable`. */
export function registerAlphaRoutes(api: HttpServer, rates: AlphaRates | null): void {
  api.get(
    '/balance/convert/alpha',
    {
      config,
      schema: {
        tags,
        summary: 'Convert USD into alpha tokens',
        description:
          'Returns the amount in tokens of a subnet at the present rate. It is a quote: nothing is reserved or paid.',
        errors: { not_found: 'the token of this subnet is not accepted' },
        querystring: AlphaQuoteQuery,
        response: { 200: AlphaQuote },
      },
    },
    (request) => quote(rates, request.query),
  );
  api.get(
    '/balance/alpha/subnets',
    {
      config,
      schema: {
        tags,
        summary: 'List subnets whose tokens are accepted',
        description: 'Returns each subnet with the present rate of its token.',
        response: { 200: z.array(AlphaSubnet) },
      },
    },
    () => subnetsOf(rates),
  );
}

async function subnetsOf(rates: AlphaRates | null): Promise<AlphaSubnet[]> {
  if (rates !== null) return rates.subnets();
  throw new ApiError('upstream_unavailable', 'The rates of alpha tokens are not available', {
    status: 503,
    isExpected: true,
    hint: 'This marketplace has no source of these rates: retrying does not help. Its operator can name one (CENTRAL_ALPHA_RATES).',
  });
}

/** Throws `not_found` for a subnet whose token is not accepted. */
async function quote(
  rates: AlphaRates | null,
  { amount, netuid }: AlphaQuoteQuery,
): Promise<AlphaQuote> {
  const found = (await subnetsOf(rates)).find((subnet) =>
    netuid === undefined ? subnet.is_default : subnet.netuid === netuid,
  );
  if (found === undefined) {
    throw new ApiError('not_found', 'The token of this subnet is not accepted', {
      hint: 'GET /balance/alpha/subnets lists the accepted subnets.',
    });
  }
  const converted = Math.ceil((amount / found.rate_usd) * TOKEN_PARTS) / TOKEN_PARTS;
  return { original: amount, converted, rate: found.rate_usd, netuid: found.netuid };
}
