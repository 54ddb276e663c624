/** Rate limits: what each counts, the defaults, and the variables that set them. */

import { z } from 'zod';
import type { Rate } from './token-bucket.ts';

/**
 * Stricter rates per address for single routes, which state one in `config.limit`. They apply in addition to the
 * default rate of all requests. Limits on what an account creates per hour (templates) are in the service concerned.
 */
export const NAMED_LIMITS = ['login', 'search'] as const;
export type NamedLimit = (typeof NAMED_LIMITS)[number];

export type RateLimits = {
  /** Per address; an IPv6 address counts as its /64. */
  address: Rate;
  /** Per API key, and per account for all its sessions. */
  credential: Rate;
} & Record<NamedLimit, Rate>;

const MINUTE_MS = 60_000;

export const DEFAULT_LIMITS: RateLimits = {
  address: { quota: 600, windowMs: MINUTE_MS },
  credential: { quota: 600, windowMs: MINUTE_MS },
  /** Sign-in, sign-up and password resets: each costs a password hash and could be used to guess passwords. */
  login: { quota: 10, windowMs: MINUTE_MS },
  search: { quota: 10, windowMs: MINUTE_MS },
};

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A stricter rate for this route, or `exempt` for health probes. */
    limit?: NamedLimit | 'exempt';
  }
}

const Quota = z.coerce.number().int().min(1).max(10_000_000);

const VARIABLES = {
  address: 'CENTRAL_RATE_LIMIT_ADDRESS',
  credential: 'CENTRAL_RATE_LIMIT_CREDENTIAL',
  login: 'CENTRAL_RATE_LIMIT_LOGIN',
  search: 'CENTRAL_RATE_LIMIT_SEARCH',
} as const satisfies Record<keyof RateLimits, string>;

/** Part of a process's configuration schema: requests per window of each rate. */
export const RateLimitVariables = z.object({
  [VARIABLES.address]: Quota.optional(),
  [VARIABLES.credential]: Quota.optional(),
  [VARIABLES.login]: Quota.optional(),
  [VARIABLES.search]: Quota.optional(),
});

/** Rates that are not set keep their default. Windows cannot be configured. */
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
    login: quotaOf('login'),
    search: quotaOf('search'),
  };
}

/** Limits of `npm start`, where renter, provider and validator share one address: they only stop runaway loops. */
export const LOCAL_LIMITS: RateLimits = {
  ...DEFAULT_LIMITS,
  address: { ...DEFAULT_LIMITS.address, quota: 60_000 },
  credential: { ...DEFAULT_LIMITS.credential, quota: 60_000 },
  login: { ...DEFAULT_LIMITS.login, quota: 600 },
};
