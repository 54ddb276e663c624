/** CENTRAL_RATE_LIMIT_*: how many requests each rate lets through in its window. */
import { z } from 'zod';
import { DEFAULT_LIMITS, type RateLimits } from './policies.ts';

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
