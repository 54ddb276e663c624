/** Wire schemas of alpha tokens and quotes, and the format of a source of rates. */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { optional, queryNumber, Usd } from '../../platform/wire.ts';

const MAX_NETUID = 65_535;
const MAX_SUBNETS = 1_024;
const MAX_AMOUNT_USD = 1_000_000_000;
const MAX_RATE_USD = 1_000_000_000;

const Netuid = z.int().min(0).max(MAX_NETUID);

export const AlphaSubnet = z
  .object(
    described(
      {
        netuid: z.int(),
        name: z.string(),
        symbol: z.string(),
        rate_usd: z.number(),
        is_default: z.boolean(),
      },
      {
        netuid: 'Number of the subnet.',
        name: 'Name of the subnet.',
        symbol: 'Symbol of the subnet’s token.',
        rate_usd: 'USD for one token.',
        is_default: 'True for the subnet that a quote without `netuid` uses.',
      },
    ),
  )
  .meta({ id: 'AlphaSubnet' });
export type AlphaSubnet = z.output<typeof AlphaSubnet>;

const Rate = z.object({
  netuid: Netuid,
  name: z.string().trim().min(1).max(100),
  symbol: z.string().trim().min(1).max(20),
  rate_usd: z.number().positive().max(MAX_RATE_USD),
  is_default: z.boolean().default(false),
});

/** At least one rate. The first rate is the default unless another is marked as default. */
export const AlphaRateList = z
  .array(Rate)
  .min(1)
  .max(MAX_SUBNETS)
  .refine(
    (rates) => new Set(rates.map(({ netuid }) => netuid)).size === rates.length,
    'A netuid occurs twice',
  )
  .refine((rates) => rates.filter((rate) => rate.is_default).length <= 1, 'More than one default')
  .transform((rates): AlphaSubnet[] => {
    const hasDefault = rates.some((rate) => rate.is_default);
    return rates.map((rate, index) => ({
      ...rate,
      is_default: hasDefault ? rate.is_default : index === 0,
    }));
  });

export const AlphaQuoteQuery = z
  .object(
    described(
      {
        amount: queryNumber(z.number().positive().max(MAX_AMOUNT_USD)),
        netuid: optional(queryNumber(Netuid)),
      },
      {
        amount: 'Amount in USD to convert, above 0.',
        netuid: 'Number of the subnet; the default subnet if absent.',
      },
    ),
  )
  .meta({ example: { amount: 25 } });
export type AlphaQuoteQuery = z.output<typeof AlphaQuoteQuery>;

export const AlphaQuote = z
  .object(
    described(
      {
        original: Usd,
        converted: z.number().nullable(),
        rate: z.number().nullable(),
        netuid: z.int(),
      },
      {
        original: 'Amount in USD, as requested.',
        converted: 'Amount in tokens, rounded up to nine decimals; null if the rate is unknown.',
        rate: 'USD for one token; null if the rate is unknown.',
        netuid: 'Number of the subnet.',
      },
    ),
  )
  .meta({ id: 'AlphaQuote' });
export type AlphaQuote = z.output<typeof AlphaQuote>;
