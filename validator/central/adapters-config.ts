/** The CENTRAL_* variables of external services, and which of them must be set together. */
import { isIP } from 'node:net';
import { z } from 'zod';
import {
  allOrNone,
  type ConfigProblem,
  type ConfigSpec,
  type Environment,
  type IsSet,
  parseConfig,
  secret,
} from '#shared/runtime/config.ts';
import { isLoopback, isSecureUrl } from '#shared/tls/tls-mode.ts';
import { TARGETS } from './delivery/webhooks/webhook-post.ts';
import { PayoutVariable } from './money/payouts/payout-variable.ts';
import { parseS3Address } from './platform/adapters/s3-bucket.ts';
import { NODE_PLACES } from './providers/node-address.ts';

const HttpUrl = z.url({
  protocol: /^https?$/,
  error: 'must be a URL that begins with https:// or http://',
});
const PAYMENTS = ['none', 'simulated', 'stripe'] as const;
const DEFAULT_SENDER = 'Podwright <no-reply@localhost>';

const Proxies = z
  .string()
  .default('')
  .transform((text) => text.split(',').map((entry) => entry.trim()))
  .transform((entries) => entries.filter((entry) => entry !== ''))
  .refine(
    (entries) => entries.every(isAddressRange),
    'IP addresses or CIDR ranges, separated by commas',
  );

const AlphaRates = z
  .string()
  .min(1)
  .max(2_048)
  .refine(
    (text) => !/^https?:/.test(text) || HttpUrl.safeParse(text).success,
    'a file or an http(s) URL',
  );

const CollateralFeed = z
  .string()
  .min(1)
  .max(2_048)
  .refine(
    (text) => !/^https?:/.test(text) || (HttpUrl.safeParse(text).success && isSecureUrl(text)),
    'a file or an https:// URL (http:// only on this host)',
  );

const BackupRepository = z
  .string()
  .min(1)
  .max(1_024)
  .refine((text) => !/\/\/[^/@]*:[^/@]*@/.test(text), 'set credentials in separate variables')
  .refine(
    (text) => text.startsWith('/') || /^[a-z0-9]+:/.test(text),
    'an absolute path, sftp:…, s3:…, rest:…',
  )
  .refine(
    (text) => !text.startsWith('s3:') || parseS3Address(text) !== null,
    'write s3:https://HOST/BUCKET or s3:https://HOST/BUCKET/FOLDER',
  );

/** Variables of external services. All are optional. */
export const ADAPTER_VARIABLES = {
  /**
   * `smtp://user:password@host:587` or `smtps://…`. Without this variable mails are not sent and can only be read on
   * this host.
   */
  CENTRAL_SMTP_URL: secret(
    z
      .url({
        protocol: /^smtps?$/,
        error: 'write smtp://user:password@host:587 or smtps://user:password@host',
      })
      .optional(),
  ),
  CENTRAL_MAIL_FROM: z.string().includes('@').default(DEFAULT_SENDER),
  /** Base URL of the web console, for links in mails. */
  CENTRAL_CONSOLE_URL: HttpUrl.optional(),
  /** Origin of the API in the URLs that the API returns. Default: the origin of the request. */
  CENTRAL_PUBLIC_ORIGIN: HttpUrl.optional(),
  /** `public`: webhooks are sent to public addresses over https. `loopback`: webhooks are sent to this host only. */
  CENTRAL_WEBHOOK_TARGETS: z.enum(TARGETS).default('public'),
  /**
   * `public`: nodes must have public addresses. `private`: addresses of private networks are also allowed, and loopback
   * addresses if the central API listens on loopback.
   */
  CENTRAL_NODE_PLACES: z.enum(NODE_PLACES).default('public'),
  /** Proxies whose X-Forwarded-For is trusted: addresses and CIDR ranges. */
  CENTRAL_TRUSTED_PROXIES: Proxies,
  CENTRAL_API_KEYS_RETRIEVABLE: z.stringbool().default(true),
  CENTRAL_S3_BUCKET: z.string().optional(),
  CENTRAL_S3_REGION: z.string().default('us-east-1'),
  /** Endpoint of an S3-compatible store. Default: Amazon's. */
  CENTRAL_S3_ENDPOINT: HttpUrl.optional(),
  /** Both or none. Without them the SDK reads the credentials from environment, files and instance metadata. */
  CENTRAL_S3_ACCESS_KEY_ID: z.string().optional(),
  CENTRAL_S3_SECRET_ACCESS_KEY: secret(z.string().optional()),
  /** Base URL of the bucket's public objects. */
  CENTRAL_S3_PUBLIC_URL: HttpUrl.optional(),
  /** Maximum size in GiB of an account's backups on this host's disk. */
  CENTRAL_BACKUP_GIB: z.coerce.number().positive().max(1_000_000).default(50),
  /** Hours between two restore drills of a pod's backups; 0 for none. */
  CENTRAL_BACKUP_DRILL_HOURS: z.coerce.number().int().min(0).max(8_760).default(720),
  /**
   * Seconds between two settlements of a running pod. The interval does not affect the charges. The hold of a rental
   * covers 15 minutes, which is at least two settlements.
   */
  CENTRAL_METER_TICK_SECONDS: z.coerce.number().int().min(1).max(450).default(60),
  /**
   * Minutes after which a launch fails if its pod does not run. Progress of a pull or build extends the limit, to at
   * most 2 hours.
   */
  CENTRAL_LAUNCH_LIMIT_MINUTES: z.coerce.number().int().min(1).max(120).default(10),
  /** Seconds between two syncs of a node whose pods need nothing. */
  CENTRAL_SYNC_INTERVAL_SECONDS: z.coerce.number().int().min(1).max(60).default(10),
  /** Maximum number of nodes that a process syncs at once. An eighth is left for nodes with a new rental or request. */
  CENTRAL_SYNC_CONCURRENCY: z.coerce.number().int().min(2).max(1_000).default(64),
  /**
   * Hours for which topped-up credit can be spent but not transferred, because the payer may dispute the payment; 0 for
   * none.
   */
  CENTRAL_TOP_UP_WAIT_HOURS: z.coerce.number().int().min(0).max(8_760).default(24),
  /** Maximum size of a volume's data, in GiB. */
  CENTRAL_VOLUME_GIB: z.coerce.number().positive().max(1_000_000).default(20),
  /**
   * Location prefix of restic repositories; without it repositories are stored on this host. This process serves
   * repositories in a bucket (`s3:…`) to the nodes.
   */
  CENTRAL_BACKUP_REPOSITORY: BackupRepository.optional(),
  /** Credential of the bucket of the repositories. Nodes do not receive it. */
  CENTRAL_BACKUP_AWS_ACCESS_KEY_ID: z.string().optional(),
  CENTRAL_BACKUP_AWS_SECRET_ACCESS_KEY: secret(z.string().optional()),
  CENTRAL_BACKUP_AWS_DEFAULT_REGION: z.string().optional(),
  /** Credentials of a REST server. Nodes receive them as environment variables without the prefix `CENTRAL_BACKUP_`. */
  CENTRAL_BACKUP_RESTIC_REST_USERNAME: z.string().optional(),
  CENTRAL_BACKUP_RESTIC_REST_PASSWORD: secret(z.string().optional()),
  /** The following variables, except the scope, must be set together. */
  CENTRAL_CHAT_AUTHORIZE_URL: HttpUrl.optional(),
  CENTRAL_CHAT_TOKEN_URL: HttpUrl.optional(),
  CENTRAL_CHAT_USER_URL: HttpUrl.optional(),
  CENTRAL_CHAT_CLIENT_ID: z.string().optional(),
  CENTRAL_CHAT_CLIENT_SECRET: secret(z.string().optional()),
  /** Page of the console to which the chat platform redirects. */
  CENTRAL_CHAT_REDIRECT_URL: HttpUrl.optional(),
  CENTRAL_CHAT_SCOPE: z.string().default('identify'),
  /** Base URL of the central miner server; without it nothing is synchronised. */
  CENTRAL_MINER_URL: HttpUrl.refine(
    isSecureUrl,
    'https:// unless on this host, because the token is sent to this address',
  ).optional(),
  /** Sent to the central miner server as a bearer token. */
  CENTRAL_MINER_TOKEN: secret(z.string().min(1).max(1_000).optional()),
  /** URL of the documentation of checks. */
  CENTRAL_DOCS_URL: HttpUrl.optional(),
  /** Base URL of support channels. The channel's name is appended. */
  CENTRAL_CHAT_CHANNEL_URL: HttpUrl.optional(),
  /** Table of addresses in MaxMind's format, which is used to verify the places of nodes. */
  CENTRAL_ADDRESS_TABLE: z.string().min(1).max(1_024).optional(),
  /** Deposits of nodes and providers: a JSON file or an http(s) URL, polled once a minute. */
  CENTRAL_COLLATERAL_FEED: CollateralFeed.optional(),
  /** Address that receives the messages of support channels. */
  CENTRAL_SUPPORT_EMAIL: z.email().optional(),
  /** Rates of alpha tokens: a JSON file or an http(s) URL. */
  CENTRAL_ALPHA_RATES: AlphaRates.optional(),
  /** Payment processor; `simulated` moves no money. */
  CENTRAL_PAYMENTS: z.enum(PAYMENTS).default('none'),
  /** Processor of payouts; `simulated` moves no money. */
  ...PayoutVariable.shape,
  CENTRAL_STRIPE_SECRET_KEY: secret(z.string().optional()),
  /** `whsec_…`: secret of the Stripe endpoint that calls /payments/callback. */
  CENTRAL_STRIPE_CALLBACK_SECRET: secret(z.string().optional()),
};

export const BACKUP_KEYS = [
  'CENTRAL_BACKUP_AWS_ACCESS_KEY_ID',
  'CENTRAL_BACKUP_AWS_SECRET_ACCESS_KEY',
] as const;
export const S3_KEYS = ['CENTRAL_S3_ACCESS_KEY_ID', 'CENTRAL_S3_SECRET_ACCESS_KEY'] as const;
export const CHAT_MEMBERS = [
  'CENTRAL_CHAT_AUTHORIZE_URL',
  'CENTRAL_CHAT_TOKEN_URL',
  'CENTRAL_CHAT_USER_URL',
  'CENTRAL_CHAT_CLIENT_ID',
  'CENTRAL_CHAT_CLIENT_SECRET',
  'CENTRAL_CHAT_REDIRECT_URL',
] as const;
export const STRIPE_SECRETS = [
  'CENTRAL_STRIPE_SECRET_KEY',
  'CENTRAL_STRIPE_CALLBACK_SECRET',
] as const;
/** Variables that must be set together. */
const GROUPS: readonly (readonly string[])[] = [S3_KEYS, BACKUP_KEYS, CHAT_MEMBERS, STRIPE_SECRETS];

/** Returns the problems that result from combinations of these variables. */
export function adapterProblems(
  { CENTRAL_PAYMENTS: payments }: Partial<AdaptersConfig>,
  isSet: IsSet,
): ConfigProblem[] {
  const problems = GROUPS.flatMap((names) => allOrNone(names, isSet));
  const name = 'CENTRAL_PAYMENTS';
  const hasSecrets = STRIPE_SECRETS.some(isSet);
  if (payments === 'stripe' && !hasSecrets) {
    problems.push({ name, message: `${name}: stripe needs ${STRIPE_SECRETS.join(' and ')}` });
  }
  // Stripe's secrets are set, but another processor is selected: one of the settings is a mistake.
  if (payments !== undefined && payments !== 'stripe' && hasSecrets) {
    problems.push({ name, message: `${name}: set it to stripe, or remove Stripe's secrets` });
  }
  return problems;
}

/**
 * Returns the problems that result from the address on which the API listens: if other hosts can call the API, they
 * must not be able to make it call programs on its own host.
 */
export function loopbackProblems(
  { CENTRAL_WEBHOOK_TARGETS: targets }: Partial<AdaptersConfig>,
  host: string | undefined,
): ConfigProblem[] {
  if (targets !== 'loopback' || host === undefined || isLoopback(host)) return [];
  const name = 'CENTRAL_WEBHOOK_TARGETS';
  const message = `${name}: loopback needs a central API that listens on loopback, not on ${host}`;
  return [{ name, message }];
}

const Schema = z.object(ADAPTER_VARIABLES);
const SPEC: ConfigSpec<typeof ADAPTER_VARIABLES> = {
  schema: Schema,
  prefix: 'CENTRAL_',
  rules: adapterProblems,
};

export type AdaptersConfig = z.output<typeof Schema>;

/** Reads these variables and ignores others. Throws a ConfigError that names every wrong variable. */
export function readAdaptersConfig(environment: Environment): AdaptersConfig {
  return parseConfig(SPEC, environment);
}

/** Returns a group of variables; null if the group is not set. Partial groups are rejected earlier. */
export function wholeGroup<Name extends keyof AdaptersConfig>(
  config: AdaptersConfig,
  names: readonly Name[],
): Record<Name, string> | null {
  if (names.some((name) => config[name] === undefined)) return null;
  const values = names.map((name) => [name, String(config[name])] as const);
  return Object.fromEntries(values) as Record<Name, string>;
}

function isAddressRange(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/');
  const family = isIP(address);
  if (family === 0 || rest.length > 0) return false;
  if (bits === undefined) return true;
  return /^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128);
}
