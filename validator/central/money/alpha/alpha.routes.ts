/** Public quotes of US dollars in alpha tokens: GET /balance/convert/alpha and GET /balance/alpha/subnets. */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import type { AlphaRates } from '../../platform/ports.ts';
import { AlphaQuote, AlphaQuoteQuery, AlphaSubnet } from './alpha.schemas.ts';

/** Smallest parts of one token. */
const TOKEN_PARTS = 1e9;
/** Number of the network's root subnet, for a quote without a subnet in a marketplace without rates. */
const DEFAULT_NETUID = 0;

const tags = ['Balance'];
const config = { auth: 'none' } as const;

/** Registers the routes. If `rates` is null, quotes are null and the list is empty. */
export function registerAlphaRoutes(api: HttpServer, rates: AlphaRates | null): void {
  api.get(
    '/balance/convert/alpha',
    {
      config,
      schema: {
        tags,
        summary: 'Convert USD into alpha tokens',
        description:
          'Returns the amount in tokens of a subnet at the present rate. Amount and rate are null if the rate is unknown. The amount is only a quote: nothing is reserved or paid.',
        errors: { validation_error: 'the amount is missing or is not a positive number' },
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
        description:
          'Returns each subnet with the present rate of its token; an empty list if no rates are known.',
        response: { 200: z.array(AlphaSubnet) },
      },
    },
    () => subnetsOf(rates),
  );
}

/** Returns null for tokens and rate if the rate of the subnet is unknown. */
async function quote(
  rates: AlphaRates | null,
  { amount, netuid }: AlphaQuoteQuery,
): Promise<AlphaQuote> {
  const found = (await subnetsOf(rates)).find((subnet) =>
    netuid === undefined ? subnet.is_default : subnet.netuid === netuid,
  );
  if (found === undefined) {
    return { original: amount, converted: null, rate: null, netuid: netuid ?? DEFAULT_NETUID };
  }
  const converted = Math.ceil((amount / found.rate_usd) * TOKEN_PARTS) / TOKEN_PARTS;
  return { original: amount, converted, rate: found.rate_usd, netuid: found.netuid };
}

async function subnetsOf(rates: AlphaRates | null): Promise<AlphaSubnet[]> {
  return rates === null ? [] : rates.subnets();
}
