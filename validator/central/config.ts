/** Configuration of a standalone central API: CENTRAL_* variables. */
import { join } from 'node:path';
import { z } from 'zod';
import { ListenAddress, portConflict } from '#shared/http/listen.ts';
import { type ConfigSpec, type Environment, parseConfig } from '#shared/runtime/config.ts';
import { Hotkey } from '#shared/signing/hotkey.ts';
import { Pin } from '#shared/tls/peer.ts';
import { isSecureUrl } from '#shared/tls/tls-mode.ts';
import { databaseProblems } from '../database/open-database.ts';
import { ADAPTER_VARIABLES, adapterProblems, loopbackProblems } from './adapters-config.ts';
import {
  DatabaseBackupVariables,
  DatabaseLimitVariables,
  DatabasePlace,
  databaseLimitProblems,
} from './platform/central-home.ts';
import { CorsVariables } from './platform/edge/cors.ts';
import { RateLimitVariables } from './platform/rate-limits/policies.ts';

const HotkeyList = z
  .string()
  .transform((text) => text.split(',').map((entry) => entry.trim()))
  .pipe(z.array(Hotkey));

/**
 * Address of a listener without TLS that serves only /metrics; if absent, there is no such listener. `npm start` also
 * reads this variable.
 */
export const MetricsVariable = z.object({ CENTRAL_METRICS_LISTEN: ListenAddress.optional() });

const Schema = z.object({
  ...DatabasePlace.shape,
  ...DatabaseLimitVariables.shape,
  ...DatabaseBackupVariables.shape,
  CENTRAL_HOST: z.string().default('127.0.0.1'),
  CENTRAL_PORT: z.coerce.number().int().min(0).max(65_535).default(8000),
  ...MetricsVariable.shape,
  /**
   * Seconds between the signal to stop and the end of the listener. Meanwhile `/readyz` answers 503, so that load
   * balancers move to other processes. The time limit of the stop must be at least 30 s longer.
   */
  CENTRAL_DRAIN_SECONDS: z.coerce.number().int().min(0).max(300).default(0),
  /** Base URL of the validator's gateway, which relays to agents. */
  CENTRAL_GATEWAY_URL: z
    .url({
      protocol: /^https?$/,
      error: 'must be a URL that begins with https:// (http:// only on this host)',
    })
    .refine(isSecureUrl, 'https:// unless on this host, because requests contain secrets'),
  /**
   * Pin of the gateway's certificate, `sha256//…=` as the validator logs it. Without it, the system's certificate
   * authorities verify the certificate.
   */
  CENTRAL_GATEWAY_PIN: Pin.optional(),
  /** Hotkey of the validator that runs the gateway. */
  CENTRAL_GATEWAY_HOTKEY: Hotkey,
  /** Validators whose verdicts are accepted. Default: the gateway's validator. */
  CENTRAL_VALIDATORS: HotkeyList.optional(),
  /** Hexadecimal seed of the central API's hotkey, mode 0600; created at the first start if absent. */
  CENTRAL_SEED_FILE: z.string().optional(),
  /** 32 bytes that sign sessions and encrypt API keys; the same in every process on one database. */
  CENTRAL_SECRET_FILE: z.string().optional(),
  CENTRAL_SIGNUP_CREDIT_USD: z.coerce.number().min(0).max(1_000_000).default(0),
  /** False verifies new addresses without a mail. */
  CENTRAL_VERIFY_EMAIL: z.stringbool().default(true),
  ...ADAPTER_VARIABLES,
  ...CorsVariables.shape,
  ...RateLimitVariables.shape,
  CENTRAL_LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace']).default('info'),
});

export type CentralConfig = z.output<typeof Schema>;

export const CENTRAL_CONFIG: ConfigSpec<typeof Schema.shape> = {
  schema: Schema,
  prefix: 'CENTRAL_',
  rules: (right, isSet) => [
    ...adapterProblems(right, isSet),
    ...loopbackProblems(right, right.CENTRAL_HOST),
    ...databaseProblems('CENTRAL_DATABASE', right.CENTRAL_DATABASE),
    ...databaseLimitProblems(right),
    ...portConflict('CENTRAL_METRICS_LISTEN', right.CENTRAL_METRICS_LISTEN, {
      host: right.CENTRAL_HOST,
      port: right.CENTRAL_PORT,
      names: 'CENTRAL_HOST and CENTRAL_PORT',
    }),
  ],
};

/** Throws a ConfigError that names every wrong variable. */
export function readCentralConfig(environment: Environment): CentralConfig {
  return parseConfig(CENTRAL_CONFIG, environment);
}

const SEED_CONFIG = {
  schema: Schema.pick({ CENTRAL_HOME: true, CENTRAL_SEED_FILE: true }),
  prefix: 'CENTRAL_',
};

/** Path of the seed file. */
export function centralSeedFile(
  config: Pick<CentralConfig, 'CENTRAL_HOME' | 'CENTRAL_SEED_FILE'>,
): string {
  return config.CENTRAL_SEED_FILE ?? join(config.CENTRAL_HOME, 'central.seed');
}

/** Path of the file with the deployment's secret. */
export function centralSecretFile(
  config: Pick<CentralConfig, 'CENTRAL_HOME' | 'CENTRAL_SECRET_FILE'>,
): string {
  return config.CENTRAL_SECRET_FILE ?? join(config.CENTRAL_HOME, 'central.secret');
}

/** Path of the seed file, for commands that need only the key. Ignores the other variables. */
export function centralSeedFileIn(environment: Environment): string {
  return centralSeedFile(parseConfig(SEED_CONFIG, environment));
}
