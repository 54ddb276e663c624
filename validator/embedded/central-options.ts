/** What `npm start` reads of the central API's own variables. */
import { parseConfig } from '#shared/runtime/config.ts';
import type { CentralOptions } from '../central/platform/central-deps.ts';
import { CorsVariables, corsOriginsFrom } from '../central/platform/edge/config.ts';
import {
  LOCAL_LIMITS,
  RateLimitVariables,
  rateLimitsFrom,
} from '../central/platform/rate-limits/config.ts';

/** Throws ConfigError naming the wrong variable. */
export function centralOptionsFrom(
  environment: Record<string, string | undefined>,
): Pick<CentralOptions, 'rateLimits' | 'corsOrigins'> {
  const limits = parseConfig(
    { schema: RateLimitVariables, prefix: 'CENTRAL_RATE_LIMIT_' },
    environment,
  );
  const cors = parseConfig({ schema: CorsVariables, prefix: 'CENTRAL_CORS_' }, environment);
  return { rateLimits: rateLimitsFrom(limits, LOCAL_LIMITS), corsOrigins: corsOriginsFrom(cors) };
}
