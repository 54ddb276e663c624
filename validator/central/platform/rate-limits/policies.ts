/** Rate limits: the requests that each rate counts, the defaults, and the variables that set the rates. */

import { z } from 'zod';
import type { Rate } from './token-bucket.ts';

/**
 * Stricter rates per address for single routes. A route selects one of them in `config.limit`. The default rate per
 * address also applies. Limits on the number of objects that an account creates per hour, such as templates, are in the
 * services of those objects.
 */
export const NAMED_LIMITS = ['login', 'search'] as const;
export type NamedLimit = (typeof NAMED_LIMITS)[number];

export type RateLimits = {
  /** Rate per address; an IPv6 address counts as its /64. */
  address: Rate;
  /** Rate per API key, and one rate for all sessions of an account. */
  credential: Rate;
  /** Rate per address of urgent requests, which count against no other rate. */
  urgent: Rate;
} & Record<NamedLimit, Rate>;

const MINUTE_MS = 60_000;

export const DEFAULT_LIMITS: RateLimits = {
  address: { quota: 600, windowMs: MINUTE_MS },
  credential: { quota: 600, windowMs: MINUTE_MS },
  /**
   * For sign-in, sign-up and password resets, because each such request costs a password hash and can be used to guess
   * passwords.
   */
  urgent: { quota: 600, windowMs: MINUTE_MS },
  login: { quota: 10, windowMs: MINUTE_MS },
  search: { quota: 10, windowMs: MINUTE_MS },
};

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Stricter rate that also applies to this route. With `exempt`, no rate applies, which is for health probes. */
    limit?: NamedLimit | 'exempt';
  }
}

const Quota = z.coerce.number().int().min(1).max(10_000_000);

const VARIABLES = {
  address: 'CENTRAL_RATE_LIMIT_ADDRESS',
  credential: 'CENTRAL_RATE_LIMIT_CREDENTIAL',
  urgent: 'CENTRAL_RATE_LIMIT_URGENT',
  login: 'CENTRAL_RATE_LIMIT_LOGIN',
  search: 'CENTRAL_RATE_LIMIT_SEARCH',
} as const satisfies Record<keyof RateLimits, string>;

/** Environment variables, which processes add to their configuration schema: requests per window for each rate. */
export const RateLimitVariables = z.object({
  [VARIABLES.address]: Quota.optional(),
  [VARIABLES.credential]: Quota.optional(),
  [VARIABLES.urgent]: Quota.optional(),
  [VARIABLES.login]: Quota.optional(),
  [VARIABLES.search]: Quota.optional(),
});

/** Returns the rates. A rate whose variable is not set has its default. Windows cannot be configured. */
export function rateLimitsFrom(
  variables: z.output<typeof RateLimitVariables>,
  defaults: RateLimits = DEFAULT_LIMITS,
): RateLimits {
  const quotaOf = (name: keyof RateLimits) => ({
    ...defaults[name],
    quota: variables[VARIABLES[name]] ?? defaults[name].quota,
  });
  return {
    address: quotaOf('address'),
    credential: quotaOf('credential'),
    urgent: quotaOf('urgent'),
    login: quotaOf('login'),
    search: quotaOf('search'),
  };
}

/**
 * Limits of `npm start`, where renter, provider and validator share one address. The limits are high, because they must
 * stop only runaway loops.
 */
export const LOCAL_LIMITS: RateLimits = {
  ...DEFAULT_LIMITS,
  address: { ...DEFAULT_LIMITS.address, quota: 60_000 },
  credential: { ...DEFAULT_LIMITS.credential, quota: 60_000 },
  urgent: { ...DEFAULT_LIMITS.urgent, quota: 60_000 },
  login: { ...DEFAULT_LIMITS.login, quota: 600 },
};
