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
import { isSecureUrl, TLS_MODES, tlsProblems } from '#shared/tls/tls-mode.ts';
import {
  ImageName,
  ImageTag,
  KeyId,
  Permille,
  ROLLOUT_PARTS,
} from '#shared/updates/update-manifest.ts';
import { databaseProblems } from './database/open-database.ts';

const DEFAULT_HOME = '/var/lib/podwright-validator';

const Schema = z.object({
  /** Folder of the validator's files. */
  VALIDATOR_HOME: z.string().default(DEFAULT_HOME),
  /** The ledger: `postgres://…` for several processes of one validator; a file in VALIDATOR_HOME when absent. */
  VALIDATOR_DATABASE: secret(z.string().min(1).optional()),
  /** The hotkey's seed, mode 0600; made on the first start when absent. */
  VALIDATOR_SEED_FILE: z.string().optional(),
  /** The hotkey as an encrypted key file instead, and the file with its passphrase; both of mode 0600. */
  VALIDATOR_KEY_FILE: z.string().optional(),
  VALIDATOR_KEY_PASSPHRASE_FILE: z.string().optional(),
  /** The signed key set that agents are given: whose evidence counts as ours after a change of the key. */
  VALIDATOR_KEY_SET: z.string().optional(),
  VALIDATOR_HOST: z.string().default('127.0.0.1'),
  VALIDATOR_PORT: z.coerce.number().int().min(0).max(65_535).default(8090),
  /** Of the gateway: `auto` is TLS unless VALIDATOR_HOST is the loopback address. */
  VALIDATOR_TLS: z.enum(TLS_MODES).default('auto'),
  /** PEM files; a certificate of our own when absent, known by its pin. */
  VALIDATOR_TLS_CERT: z.string().optional(),
  VALIDATOR_TLS_KEY: z.string().optional(),
  /** Whether VALIDATOR_TLS=off is accepted where others reach the gateway. */
  VALIDATOR_TLS_OFF_EXPOSED: z.stringbool().default(false),
  /** `on`: agents on this machine serve TLS too, as all others do. */
  VALIDATOR_AGENT_TLS: z.enum(['auto', 'on']).default('auto'),
  /** Plain address for `/metrics` (then only there) and health. */
  VALIDATOR_METRICS_LISTEN: ListenAddress.optional(),
  /** Base address of the central API, `/api` included. */
  VALIDATOR_CENTRAL_URL: z
    .url({ protocol: /^https?$/ })
    .refine(isSecureUrl, 'https:// away from this machine, for it carries signatures'),
  /** The central API's key: the only one that the gateway relays for. */
  VALIDATOR_CENTRAL_HOTKEY: Hotkey,
  /** Seconds between two checks of one executor. */
  VALIDATOR_CHECK_INTERVAL_S: z.coerce.number().int().min(5).max(86_400).default(900),
  /** Seconds between two readings of the executor list. */
  VALIDATOR_LIST_INTERVAL_S: z.coerce.number().int().min(1).max(3_600).default(60),
  /** Executors that this process looks at at once: more take more memory. */
  VALIDATOR_CHECKS_AT_ONCE: z.coerce.number().int().min(1).max(10_000).default(512),
  /** What weights are computed by; the policy that comes with this version when absent. */
  VALIDATOR_WEIGHT_POLICY: z.string().optional(),
  /** What checks go by; the policy that comes with this version when absent. */
  VALIDATOR_CHECK_POLICY: z.string().optional(),
  /** Who is registered: a JSON file that is read anew each time. Without one no weights are computed. */
  VALIDATOR_METAGRAPH: z.string().optional(),
  /** Seconds from one set of weights to the next. */
  VALIDATOR_WEIGHTS_INTERVAL_S: z.coerce.number().int().min(5).max(604_800).default(4_320),
  /** Days that evidence and computed weights are kept. */
  VALIDATOR_EVIDENCE_DAYS: z.coerce.number().int().min(1).max(365).default(14),
  /** Whether simulated GPUs pass: for local use only, and they earn no weight even then. */
  VALIDATOR_ACCEPT_SIMULATED: z.stringbool().default(false),
  /** Repository of the agent's image, whose tag's digest is signed; none when absent. */
  VALIDATOR_AGENT_IMAGE: ImageName.optional(),
  VALIDATOR_AGENT_TAG: ImageTag.default('latest'),
  /** The login for its registry, a JSON file of mode 0600; the image is public when absent. */
  VALIDATOR_AGENT_LOGIN_FILE: z.string().min(1).optional(),
  /** Of a thousand agents, how many get a new digest before anybody says more. */
  VALIDATOR_AGENT_ROLLOUT: z.coerce.number().pipe(Permille).default(ROLLOUT_PARTS),
  /** Seconds that a signed digest counts. */
  VALIDATOR_AGENT_EXPIRY_S: z.coerce.number().int().min(600).max(604_800).default(3_600),
  /** What key sets call the hotkey; its ss58 serves too. */
  VALIDATOR_KEY_ID: KeyId.optional(),
  VALIDATOR_LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace']).default('info'),
});

export type ValidatorConfig = z.output<typeof Schema>;

/** The validator's variables, for whoever reads or shows them. */
export const VALIDATOR_CONFIG: ConfigSpec<typeof Schema.shape> = {
  schema: Schema,
  prefix: 'VALIDATOR_',
  rules: (right, isSet) => [
    ...keyProblems(isSet),
    ...databaseProblems('VALIDATOR_DATABASE', right.VALIDATOR_DATABASE),
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
  message: 'VALIDATOR_SEED_FILE and VALIDATOR_KEY_FILE are two keys: set one',
};

/** Throws ConfigError naming every wrong variable. */
export function readValidatorConfig(environment: Environment): ValidatorConfig {
  return parseConfig(VALIDATOR_CONFIG, environment);
}

function keyProblems(isSet: IsSet): ConfigProblem[] {
  return [
    ...allOrNone(['VALIDATOR_KEY_FILE', 'VALIDATOR_KEY_PASSPHRASE_FILE'], isSet),
    ...(isSet('VALIDATOR_KEY_FILE') && isSet('VALIDATOR_SEED_FILE') ? [TWO_KEYS] : []),
  ];
}

const KEY_CONFIG = {
  schema: Schema.pick({
    ...{ VALIDATOR_HOME: true, VALIDATOR_SEED_FILE: true, VALIDATOR_KEY_SET: true },
    ...{ VALIDATOR_KEY_FILE: true, VALIDATOR_KEY_PASSPHRASE_FILE: true },
  }),
  prefix: 'VALIDATOR_',
  rules: (_right: unknown, isSet: IsSet) => keyProblems(isSet),
};

/** Where the own key and its key set lie, for whoever only looks: whatever else is configured. */
export function keyConfigIn(environment: Environment): z.output<typeof KEY_CONFIG.schema> {
  return parseConfig(KEY_CONFIG, environment);
}

const STORE_CONFIG = {
  schema: Schema.pick({ VALIDATOR_HOME: true, VALIDATOR_DATABASE: true }),
  prefix: 'VALIDATOR_',
};

/** The ledger of whoever only looks into it: its address or file, whatever else is configured. */
export function storeTargetIn(environment: Environment): string {
  return storeTarget(parseConfig(STORE_CONFIG, environment));
}

/** `postgres://…`, or a file. */
export function storeTarget(
  config: Pick<ValidatorConfig, 'VALIDATOR_HOME' | 'VALIDATOR_DATABASE'>,
): string {
  return config.VALIDATOR_DATABASE ?? join(config.VALIDATOR_HOME, 'ledger.db');
}
