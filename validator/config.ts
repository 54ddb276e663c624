/** The validator's configuration: VALIDATOR_* variables. */
import { join } from 'node:path';
import { z } from 'zod';
import { ListenAddress, portConflict } from '#shared/http/listen.ts';
import {
  allOrNone,
  type ConfigProblem,
  type ConfigSpec,
  type Environment,
  type IsSet,
  parseConfig,
  secret,
} from '#shared/runtime/config.ts';
import { Hotkey } from '#shared/signing/hotkey.ts';
import { KeyId } from '#shared/signing/key-set.ts';
import { isSecureUrl, TLS_MODES, tlsProblems } from '#shared/tls/tls-mode.ts';
import {
  ImageName,
  ImageTag,
  MAX_LIFETIME_MS,
  Permille,
  ROLLOUT_PARTS,
} from '#shared/updates/update-manifest.ts';
import type { BackupPlan } from './database/database-watch.ts';
import { databaseProblems } from './database/open-database.ts';
import {
  LockSeconds,
  PoolSize,
  type ServerLimits,
  StatementSeconds,
  serverLimitProblems,
  serverLimitsOf,
} from './database/server-limits.ts';

const DEFAULT_HOME = '/var/lib/podwright-validator';

const Coordinates = z
  .string()
  .regex(/^-?\d{1,2}(\.\d+)?,-?\d{1,3}(\.\d+)?$/, 'degrees north and east, such as 52.52,13.41')
  .transform((text) => text.split(',').map(Number))
  .pipe(z.tuple([z.number().min(-90).max(90), z.number().min(-180).max(180)]))
  .transform(([lat, lon]) => ({ lat, lon }));

const MAX_HOURS = 8_760;
const MAX_KEPT = 1_000;

const BackupShape = {
  /** Hours between two backups of a store in a SQLite file; 0 for none. */
  VALIDATOR_DATABASE_BACKUP_HOURS: z.coerce.number().int().min(0).max(MAX_HOURS).default(6),
  /** Number of newest backups that are kept. */
  VALIDATOR_DATABASE_BACKUP_KEEP: z.coerce.number().int().min(1).max(MAX_KEPT).default(4),
  /** Folder of the backups. Default: database-backups beside the store. */
  VALIDATOR_DATABASE_BACKUP_DIR: z.string().min(1).optional(),
};

const Schema = z.object({
  /** Folder of the validator's files. */
  VALIDATOR_HOME: z.string().default(DEFAULT_HOME),
  /** Evidence store: `postgres://…` for several processes of one validator; default: ledger.db in VALIDATOR_HOME. */
  VALIDATOR_DATABASE: secret(z.string().min(1).optional()),
  /** Maximum number of connections of a process to a PostgreSQL server. */
  VALIDATOR_DATABASE_POOL_SIZE: PoolSize,
  /** Time limit of a query on a PostgreSQL server in seconds. */
  VALIDATOR_DATABASE_STATEMENT_SECONDS: StatementSeconds,
  /** Time limit of the wait for a lock on a PostgreSQL server in seconds. */
  VALIDATOR_DATABASE_LOCK_SECONDS: LockSeconds,
  ...BackupShape,
  /** Seed of the hotkey, mode 0600; created on the first start. Default: hotkey.seed in VALIDATOR_HOME. */
  VALIDATOR_SEED_FILE: z.string().optional(),
  /** Encrypted key file of the hotkey, used instead of a seed, and the file with its passphrase; both mode 0600. */
  VALIDATOR_KEY_FILE: z.string().optional(),
  VALIDATOR_KEY_PASSPHRASE_FILE: z.string().optional(),
  /**
   * Signed key set, the same file that agents read. Evidence signed by a key of the set stays valid after a change of
   * key.
   */
  VALIDATOR_KEY_SET: z.string().optional(),
  VALIDATOR_HOST: z.string().default('127.0.0.1'),
  VALIDATOR_PORT: z.coerce.number().int().min(0).max(65_535).default(8090),
  /** TLS of the gateway: `auto` enables it unless VALIDATOR_HOST is a loopback address. */
  VALIDATOR_TLS: z.enum(TLS_MODES).default('auto'),
  /** PEM files; default: a self-signed certificate that clients pin. */
  VALIDATOR_TLS_CERT: z.string().optional(),
  VALIDATOR_TLS_KEY: z.string().optional(),
  /** Accepts VALIDATOR_TLS=off on an address that other machines can reach. */
  VALIDATOR_TLS_OFF_EXPOSED: z.stringbool().default(false),
  /** `off` uses plain HTTP for agents on loopback addresses. `auto`, an older default, is the same as `on`. */
  VALIDATOR_AGENT_TLS: z.enum(TLS_MODES).default('on'),
  /** Separate plain listener for health and `/metrics`, which the gateway then does not serve. */
  VALIDATOR_METRICS_LISTEN: ListenAddress.optional(),
  /** Base URL of the central API, including `/api`. */
  VALIDATOR_CENTRAL_URL: z
    .url({
      protocol: /^https?$/,
      error: 'must be a URL that begins with https:// (http:// only on this host)',
    })
    .refine(
      isSecureUrl,
      'https:// is required for another machine, because requests carry signatures',
    )
    .refine((url) => /\/api\/*$/.test(url), 'must end in /api'),
  /** Key of the central API, the only one whose commands the gateway relays. */
  VALIDATOR_CENTRAL_HOTKEY: Hotkey,
  /** Seconds between two checks of one executor. */
  VALIDATOR_CHECK_INTERVAL_S: z.coerce.number().int().min(5).max(86_400).default(900),
  /** Seconds between two reads of the executor list. */
  VALIDATOR_LIST_INTERVAL_S: z.coerce.number().int().min(1).max(3_600).default(60),
  /** Number of executors that are inspected in parallel; a higher number needs more memory. */
  VALIDATOR_CHECKS_AT_ONCE: z.coerce.number().int().min(1).max(10_000).default(512),
  /** Weight policy file; default: the policy of this release. */
  VALIDATOR_WEIGHT_POLICY: z.string().optional(),
  /** Check policy file; default: the policy of this release. */
  VALIDATOR_CHECK_POLICY: z.string().optional(),
  /** JSON file of registered hotkeys, read for each epoch. Without it no weights are computed. */
  VALIDATOR_METAGRAPH: z.string().optional(),
  /** Seconds between two epochs. */
  VALIDATOR_WEIGHTS_INTERVAL_S: z.coerce.number().int().min(5).max(604_800).default(4_320),
  /** Retention of epochs and of documents of passed checks in days. */
  VALIDATOR_EVIDENCE_DAYS: z.coerce.number().int().min(1).max(365).default(14),
  /** Retention of verdicts, and of the documents of checks that did not pass, in days; default: no limit. */
  VALIDATOR_VERDICT_DAYS: z.coerce.number().int().min(1).max(36_500).optional(),
  /** `lat,lon` of this validator, in degrees. With them, round trips to agents bound the agents' distance. */
  VALIDATOR_COORDINATES: Coordinates.optional(),
  /** Lets simulated GPUs pass the checks, for local use; they earn no weight. */
  VALIDATOR_ACCEPT_SIMULATED: z.stringbool().default(false),
  /** JSON file, mode 0600, with the accounts of hidden rentals; without it none are made. */
  VALIDATOR_PROBE_ACCOUNTS_FILE: z.string().min(1).optional(),
  /** Most USD that hidden rentals cost within 24 hours. */
  VALIDATOR_PROBE_USD_PER_DAY: z.coerce.number().min(0).max(1_000_000).default(20),
  /** SOCKS5 proxy of the logins of hidden rentals, so that hosts do not see the validator's address. */
  VALIDATOR_PROBE_SOCKS: ListenAddress.optional(),
  /** Repository of the agent's image; the validator signs the digest of its tag. Default: none, nothing is signed. */
  VALIDATOR_AGENT_IMAGE: ImageName.optional(),
  VALIDATOR_AGENT_TAG: ImageTag.default('latest'),
  /** JSON file, mode 0600, with the registry login; none for a public image. */
  VALIDATOR_AGENT_LOGIN_FILE: z.string().min(1).optional(),
  /** Share of agents, in thousandths, that install a new digest first. */
  VALIDATOR_AGENT_ROLLOUT: z.coerce.number().pipe(Permille).default(ROLLOUT_PARTS),
  /** Validity of a signed digest in seconds. */
  VALIDATOR_AGENT_EXPIRY_S: z.coerce
    .number()
    .int()
    .min(600)
    .max(MAX_LIFETIME_MS / 1_000)
    .default(3_600),
  /** Id of the hotkey in key sets; default: its ss58. */
  VALIDATOR_KEY_ID: KeyId.optional(),
  VALIDATOR_LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace']).default('info'),
});

export type ValidatorConfig = z.output<typeof Schema>;

export const VALIDATOR_CONFIG: ConfigSpec<typeof Schema.shape> = {
  schema: Schema,
  prefix: 'VALIDATOR_',
  rules: (right, isSet) => [
    ...keyProblems(isSet),
    ...databaseProblems('VALIDATOR_DATABASE', right.VALIDATOR_DATABASE),
    ...serverLimitProblems('VALIDATOR', {
      statementSeconds: right.VALIDATOR_DATABASE_STATEMENT_SECONDS,
      lockSeconds: right.VALIDATOR_DATABASE_LOCK_SECONDS,
    }),
    ...retentionProblems(right),
    ...portConflict('VALIDATOR_METRICS_LISTEN', right.VALIDATOR_METRICS_LISTEN, {
      host: right.VALIDATOR_HOST,
      port: right.VALIDATOR_PORT,
      names: 'VALIDATOR_HOST and VALIDATOR_PORT',
    }),
    ...tlsProblems({
      prefix: 'VALIDATOR',
      mode: right.VALIDATOR_TLS,
      host: right.VALIDATOR_HOST,
      acknowledged: right.VALIDATOR_TLS_OFF_EXPOSED,
      isSet,
    }),
  ],
};

const TWO_KEYS = {
  name: 'VALIDATOR_SEED_FILE',
  message: 'VALIDATOR_SEED_FILE and VALIDATOR_KEY_FILE both name a key: set one',
};

/** Reads the configuration. Throws ConfigError with every wrong variable. */
export function readValidatorConfig(environment: Environment): ValidatorConfig {
  return parseConfig(VALIDATOR_CONFIG, environment);
}

/** Verdicts outlive the documents from which they follow. */
function retentionProblems({
  VALIDATOR_EVIDENCE_DAYS: documents,
  VALIDATOR_VERDICT_DAYS: verdicts,
}: Partial<ValidatorConfig>): ConfigProblem[] {
  if (documents === undefined || verdicts === undefined || verdicts >= documents) return [];
  const name = 'VALIDATOR_VERDICT_DAYS';
  return [{ name, message: `${name} must not be smaller than VALIDATOR_EVIDENCE_DAYS` }];
}

function keyProblems(isSet: IsSet): ConfigProblem[] {
  return [
    ...allOrNone(['VALIDATOR_KEY_FILE', 'VALIDATOR_KEY_PASSPHRASE_FILE'], isSet),
    ...(isSet('VALIDATOR_KEY_FILE') && isSet('VALIDATOR_SEED_FILE') ? [TWO_KEYS] : []),
  ];
}

const KEY_CONFIG = {
  schema: Schema.pick({
    VALIDATOR_HOME: true,
    VALIDATOR_SEED_FILE: true,
    VALIDATOR_KEY_SET: true,
    VALIDATOR_KEY_FILE: true,
    VALIDATOR_KEY_PASSPHRASE_FILE: true,
  }),
  prefix: 'VALIDATOR_',
  rules: (_right: unknown, isSet: IsSet) => keyProblems(isSet),
};

/** Locations of the validator's key and key set, for commands that need no other configuration. */
export function keyConfigIn(environment: Environment): z.output<typeof KEY_CONFIG.schema> {
  return parseConfig(KEY_CONFIG, environment);
}

const CENTRAL_CONFIG = {
  schema: z.object({ VALIDATOR_CENTRAL_URL: Schema.shape.VALIDATOR_CENTRAL_URL.optional() }),
  prefix: 'VALIDATOR_',
};

/** Base URL of the central API, for commands that need no other configuration; null if it is not set. */
export function centralUrlIn(environment: Environment): string | null {
  return parseConfig(CENTRAL_CONFIG, environment).VALIDATOR_CENTRAL_URL ?? null;
}

const STORE_CONFIG = {
  schema: Schema.pick({ VALIDATOR_HOME: true, VALIDATOR_DATABASE: true }),
  prefix: 'VALIDATOR_',
};

/** Address of the evidence store, for commands that need no other configuration. */
export function storeTargetIn(environment: Environment): string {
  return storeTarget(parseConfig(STORE_CONFIG, environment));
}

/** Returns the plan of the store's backups. */
export function storeBackups(config: Pick<ValidatorConfig, keyof typeof BackupShape>): BackupPlan {
  return {
    hours: config.VALIDATOR_DATABASE_BACKUP_HOURS,
    keep: config.VALIDATOR_DATABASE_BACKUP_KEEP,
    folder: config.VALIDATOR_DATABASE_BACKUP_DIR,
  };
}

/** Returns the limits of the store's connections to a PostgreSQL server. */
export function storeLimits(config: ValidatorConfig): ServerLimits {
  return serverLimitsOf({
    poolSize: config.VALIDATOR_DATABASE_POOL_SIZE,
    statementSeconds: config.VALIDATOR_DATABASE_STATEMENT_SECONDS,
    lockSeconds: config.VALIDATOR_DATABASE_LOCK_SECONDS,
  });
}

/** Plan of the store's backups, for commands that need no other configuration. */
export function storeBackupsIn(environment: Environment): BackupPlan {
  const spec = { schema: z.object(BackupShape), prefix: 'VALIDATOR_DATABASE_BACKUP_' };
  return storeBackups(parseConfig(spec, environment));
}

/** Address of the evidence store: `postgres://…`, or a file. */
export function storeTarget(
  config: Pick<ValidatorConfig, 'VALIDATOR_HOME' | 'VALIDATOR_DATABASE'>,
): string {
  return config.VALIDATOR_DATABASE ?? join(config.VALIDATOR_HOME, 'ledger.db');
}
