/** Which rates there are, and whom each counts (marketplace reference 1.12). */

import { z } from 'zod';
import type { Rate } from './token-bucket.ts';

/**
 * Stricter rates of an address on single routes, which name one in `config.limit`, beside the default that counts
 * every request. What an account may make in an hour (templates) its own service counts, in the database.
 */
export const NAMED_LIMITS = ['login', 'search'] as const;
export type NamedLimit = (typeof NAMED_LIMITS)[number];

export type RateLimits = {
  /** Of one address; one IPv6 host has a /64. */
  address: Rate;
  /** Of one account by one of its keys, or by its sessions. */
  credential: Rate;
} & Record<NamedLimit, Rate>;

const MINUTE_MS = 60_000;

export const DEFAULT_LIMITS: RateLimits = {
  address: { quota: 600, windowMs: MINUTE_MS },
  credential: { quota: 600, windowMs: MINUTE_MS },
  /** Sign-in, sign-up and resets of passwords: each costs a hash, and tells guessers something. */
  login: { quota: 10, windowMs: MINUTE_MS },
  search: { quota: 10, windowMs: MINUTE_MS },
};

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A stricter rate for this route, or `exempt` for what is asked to see whether we are up. */
    limit?: NamedLimit | 'exempt';
  }
}

// MERGED validator/central/platform/rate-limits/policies.ts: CENTRAL_RATE_LIMIT_*: how many requests each rate lets through in its window.
const Quota = z.coerce.number().int().min(1).max(10_000_000);

/** By the rate that they set. */
const VARIABLES = {
  address: 'CENTRAL_RATE_LIMIT_ADDRESS',
  credential: 'CENTRAL_RATE_LIMIT_CREDENTIAL',
  login: 'CENTRAL_RATE_LIMIT_LOGIN',
  search: 'CENTRAL_RATE_LIMIT_SEARCH',
} as const satisfies Record<keyof RateLimits, string>;

/** For the schema of a process's configuration. */
export const RateLimitVariables = z.object({
  [VARIABLES.address]: Quota.optional(),
  [VARIABLES.credential]: Quota.optional(),
  [VARIABLES.login]: Quota.optional(),
  [VARIABLES.search]: Quota.optional(),
});

/** What is not set stays as in `defaults`; windows are never configured. */
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

/** Where renter, provider, validator and whoever tries things out share one address: only a loop that has run wild is stopped. */
export const LOCAL_LIMITS: RateLimits = {
  ...DEFAULT_LIMITS,
  address: { ...DEFAULT_LIMITS.address, quota: 60_000 },
  credential: { ...DEFAULT_LIMITS.credential, quota: 60_000 },
  login: { ...DEFAULT_LIMITS.login, quota: 600 },
};
