/** The configuration of a central API that runs alone: CENTRAL_* variables. */
import { join } from 'node:path';
import { z } from 'zod';
import { ListenAddress, portConflict } from '#shared/http/listen.ts';
import { type ConfigSpec, type Environment, parseConfig } from '#shared/runtime/config.ts';
import { Hotkey } from '#shared/signing/hotkey.ts';
import { Pin } from '#shared/tls/peer.ts';
import { isSecureUrl } from '#shared/tls/tls-mode.ts';
import { databaseProblems } from '../database/open-database.ts';
import { SURROUNDINGS, surroundingProblems } from './adapters-config.ts';
import { DatabasePlace } from './platform/central-home.ts';
import { CorsVariables } from './platform/edge/cors.ts';
import { RateLimitVariables } from './platform/rate-limits/policies.ts';

const HotkeyList = z
  .string()
  .transform((text) => text.split(',').map((entry) => entry.trim()))
  .pipe(z.array(Hotkey));

/** `npm start` reads it, too: plain HTTP for /metrics and nothing else; none when absent. */
export const MetricsVariable = z.object({ CENTRAL_METRICS_LISTEN: ListenAddress.optional() });

const Schema = z.object({
  ...DatabasePlace.shape,
  CENTRAL_HOST: z.string().default('127.0.0.1'),
  CENTRAL_PORT: z.coerce.number().int().min(0).max(65_535).default(8000),
  ...MetricsVariable.shape,
  /** Base address of the gateway of the validator that relays to agents. */
  CENTRAL_GATEWAY_URL: z
    .url({ protocol: /^https?$/ })
    .refine(isSecureUrl, 'https:// away from this machine, for it carries secrets'),
  /** By which its certificate is known, `sha256//…=` as the validator logs it; the system's authorities when absent. */
  CENTRAL_GATEWAY_PIN: Pin.optional(),
  /** The hotkey of that validator. */
  CENTRAL_GATEWAY_HOTKEY: Hotkey,
  /** Whose verdicts count; the gateway's validator when absent. */
  CENTRAL_VALIDATORS: HotkeyList.optional(),
  /** Hexadecimal seed of its own hotkey, mode 0600; made on the first start when absent. */
  CENTRAL_SEED_FILE: z.string().optional(),
  /** 32 bytes that sign sessions and seal API keys; the same in every process on one database. */
  CENTRAL_SECRET_FILE: z.string().optional(),
  CENTRAL_SIGNUP_CREDIT_USD: z.coerce.number().min(0).max(1_000_000).default(0),
  /** False: new addresses count as verified without a mail. */
  CENTRAL_VERIFY_EMAIL: z.stringbool().default(true),
  ...SURROUNDINGS,
  ...CorsVariables.shape,
  ...RateLimitVariables.shape,
  CENTRAL_LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace']).default('info'),
});

export type CentralConfig = z.output<typeof Schema>;

/** The central API's variables, for whoever reads or shows them. */
export const CENTRAL_CONFIG: ConfigSpec<typeof Schema.shape> = {
  schema: Schema,
  prefix: 'CENTRAL_',
  rules: (right, isSet) => [
    ...surroundingProblems(right, isSet),
    ...databaseProblems('CENTRAL_DATABASE', right.CENTRAL_DATABASE),
    ...portConflict('CENTRAL_METRICS_LISTEN', right.CENTRAL_METRICS_LISTEN, {
      host: right.CENTRAL_HOST,
      port: right.CENTRAL_PORT,
      names: 'CENTRAL_HOST and CENTRAL_PORT',
    }),
  ],
};

/** Throws ConfigError naming every wrong variable. */
export function readCentralConfig(environment: Environment): CentralConfig {
  return parseConfig(CENTRAL_CONFIG, environment);
}

const SEED_CONFIG = {
  schema: Schema.pick({ CENTRAL_HOME: true, CENTRAL_SEED_FILE: true }),
  prefix: 'CENTRAL_',
};

/** Where its seed lies. */
export function centralSeedFile(
  config: Pick<CentralConfig, 'CENTRAL_HOME' | 'CENTRAL_SEED_FILE'>,
): string {
  return config.CENTRAL_SEED_FILE ?? join(config.CENTRAL_HOME, 'central.seed');
}

/** The same for whoever only wants its key, whatever else is configured. */
export function centralSeedFileIn(environment: Environment): string {
  return centralSeedFile(parseConfig(SEED_CONFIG, environment));
}
