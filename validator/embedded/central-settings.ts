/** Variables of the central API that `npm start` reads. */
import { join } from 'node:path';
import type { z } from 'zod';
import { ConfigError, type Environment, parseConfig } from '#shared/runtime/config.ts';
import { isLoopback } from '#shared/tls/tls-mode.ts';
import {
  type AdaptersConfig,
  loopbackProblems,
  readAdaptersConfig,
} from '../central/adapters-config.ts';
import type { CentralOptions } from '../central/platform/central-deps.ts';
import { DatabaseVariable } from '../central/platform/central-home.ts';
import { openCentralDatabase } from '../central/platform/database/database.ts';
import { CorsVariables, corsOriginsFrom } from '../central/platform/edge/cors.ts';
import {
  LOCAL_LIMITS,
  RateLimitVariables,
  rateLimitsFrom,
} from '../central/platform/rate-limits/policies.ts';
import { databaseProblems, isPostgresAddress } from '../database/open-database.ts';
import type { Home } from './home.ts';

/** Defaults for a marketplace on one machine; variables override them. */
const LOCAL_DEFAULTS = {
  CENTRAL_NODE_PLACES: 'private',
  CENTRAL_PAYMENTS: 'simulated',
  CENTRAL_PAYOUTS: 'simulated',
  CENTRAL_SUPPORT_EMAIL: 'support@localhost.localdomain',
  CENTRAL_ALPHA_RATES: join(import.meta.dirname, 'alpha-rates.json'),
};

/**
 * Settings of the external services. A marketplace that other hosts reach sends webhooks to public addresses. Throws
 * ConfigError with the wrong variables.
 */
export function localAdapters(environment: Environment, host: string): AdaptersConfig {
  const targets = isLoopback(host) ? 'loopback' : 'public';
  const defaults = { ...LOCAL_DEFAULTS, CENTRAL_WEBHOOK_TARGETS: targets };
  const config = readAdaptersConfig({ ...defaults, ...environment });
  const [problem] = loopbackProblems(config, host);
  if (problem !== undefined) throw new ConfigError(problem.message);
  return config;
}

/** Throws ConfigError with the wrong variable. */
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

type DatabaseSetting = Partial<z.output<typeof DatabaseVariable>>;

/**
 * Returns the address of the database: `CENTRAL_DATABASE`, or a file in the home folder. There is no option for the
 * address, because other users can read the arguments of a process.
 */
export function databaseTarget(environment: Environment, home: Home): string {
  const spec = {
    schema: DatabaseVariable,
    prefix: 'CENTRAL_',
    rules: (right: DatabaseSetting) => databaseProblems('CENTRAL_DATABASE', right.CENTRAL_DATABASE),
  };
  return parseConfig(spec, environment).CENTRAL_DATABASE ?? home.centralDatabase;
}

/** Returns the variable or option that sets the address of the database. */
export function databaseVariable(target: string, home: Home): string {
  return target === home.centralDatabase ? '--home' : 'CENTRAL_DATABASE';
}

/** Throws ConfigError for a PostgreSQL database with nodes: `--fresh` empties a folder, never a server. */
export async function refuseFreshOn(target: string): Promise<void> {
  if (!isPostgresAddress(target)) return;
  const db = await openCentralDatabase(target);
  try {
    const nodes = await db.selectFrom('executors').select('id').limit(1).execute();
    if (nodes.length === 0) return;
  } finally {
    await db.destroy();
  }
  throw new ConfigError(
    '--fresh does not empty the PostgreSQL database of CENTRAL_DATABASE: ' +
      'drop and create it yourself (dropdb, createdb), then start again with --fresh',
  );
}
