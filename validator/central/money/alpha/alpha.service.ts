/** Quotes of US dollars in alpha tokens. */
import { ApiError } from '#shared/runtime/errors.ts';
import type { AlphaRates } from '../../platform/ports.ts';
import type { AlphaQuote, AlphaQuoteQuery, AlphaSubnet } from './alpha.schemas.ts';

const TOKEN_PARTS = 1e9;

export type Alpha = ReturnType<typeof createAlpha>;

/** `rates`: null where nobody knows any. Both throw 503 `upstream_unavailable` without rates. */
export function createAlpha(rates: AlphaRates | null) {
  async function subnets(): Promise<AlphaSubnet[]> {
    if (rates !== null) return rates.subnets();
    throw new ApiError('upstream_unavailable', 'The rates of alpha tokens are not available', {
      ...{ status: 503, isExpected: true },
      hint: 'This marketplace has no source of these rates: retrying does not help. Its operator can name one (CENTRAL_ALPHA_RATES).',
    });
  }

  return {
    subnets,

    /** Throws `not_found` for a subnet whose token is not accepted. */
    async quote({ amount, netuid }: AlphaQuoteQuery): Promise<AlphaQuote> {
      const found = (await subnets()).find((subnet) =>
        netuid === undefined ? subnet.is_default : subnet.netuid === netuid,
      );
      if (found === undefined) {
        throw new ApiError('not_found', 'The token of this subnet is not accepted', {
          hint: 'List those that are with GET /balance/alpha/subnets.',
        });
      }
      const converted = Math.ceil((amount / found.rate_usd) * TOKEN_PARTS) / TOKEN_PARTS;
      return { original: amount, converted, rate: found.rate_usd, netuid: found.netuid };
    },
  };
}
