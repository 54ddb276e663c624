/** The CENTRAL_* variables of what the central API reaches beyond this machine, and how they go together. */
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
import { isSecureUrl } from '#shared/tls/tls-mode.ts';
import { TARGETS } from './delivery/webhooks/webhook-post.ts';
import { PayoutVariable } from './money/payouts/payout-variable.ts';
import { NODE_PLACES } from './providers/node-address.ts';

const HttpUrl = z.url({ protocol: /^https?$/ });
const PAYMENTS = ['none', 'simulated', 'stripe'] as const;
const DEFAULT_SENDER = 'Podwright <no-reply@localhost>';

const Proxies = z
  .string()
  .default('')
  .transform((text) => text.split(',').map((entry) => entry.trim()))
  .transform((entries) => entries.filter((entry) => entry !== ''))
  .refine((entries) => entries.every(isAddressRange), 'IP addresses or CIDR ranges, by commas');

const AlphaRates = z
  .string()
  .min(1)
  .max(2_048)
  .refine(
    (text) => !/^https?:/.test(text) || HttpUrl.safeParse(text).success,
    'a file or an http(s) URL',
  );

const BackupRepository = z
  .string()
  .min(1)
  .max(1_024)
  .refine((text) => !/\/\/[^/@]*:[^/@]*@/.test(text), 'give credentials in variables of their own')
  .refine(
    (text) => text.startsWith('/') || /^[a-z0-9]+:/.test(text),
    'an absolute path, sftp:…, s3:…, rest:…',
  );

/** Members of the process's configuration; every one may be left out. */
export const SURROUNDINGS = {
  /** `smtp://user:password@host:587` or `smtps://…`; without it mails are kept and shown on this machine only. */
  CENTRAL_SMTP_URL: secret(
    z
      .url({
        protocol: /^smtps?$/,
        error: 'write smtp://user:password@host:587 or smtps://user:password@host',
      })
      .optional(),
  ),
  CENTRAL_MAIL_FROM: z.string().includes('@').default(DEFAULT_SENDER),
  /** Base address of the web console, for links in mails. */
  CENTRAL_CONSOLE_URL: HttpUrl.optional(),
  /** Our own origin in the addresses of uploads; that of the request when absent. */
  CENTRAL_PUBLIC_ORIGIN: HttpUrl.optional(),
  /** `public`: webhooks go to public addresses by https. `loopback`: to this machine alone. */
  CENTRAL_WEBHOOK_TARGETS: z.enum(TARGETS).default('public'),
  /** `public`: nodes have public addresses. `private`: they may be in the operator's networks and on this machine, too. */
  CENTRAL_NODE_PLACES: z.enum(NODE_PLACES).default('public'),
  /** Proxies whose X-Forwarded-For is believed: addresses and CIDR ranges. */
  CENTRAL_TRUSTED_PROXIES: Proxies,
  CENTRAL_API_KEYS_RETRIEVABLE: z.stringbool().default(true),
  CENTRAL_S3_BUCKET: z.string().optional(),
  CENTRAL_S3_REGION: z.string().default('us-east-1'),
  /** Of a store other than Amazon's. */
  CENTRAL_S3_ENDPOINT: HttpUrl.optional(),
  /** Both or none; none leaves it to the SDK's own search. */
  CENTRAL_S3_ACCESS_KEY_ID: z.string().optional(),
  CENTRAL_S3_SECRET_ACCESS_KEY: secret(z.string().optional()),
  /** Where everybody can read the bucket. */
  CENTRAL_S3_PUBLIC_URL: HttpUrl.optional(),
  /** What an account's backups may take on this machine's disk. */
  CENTRAL_BACKUP_GIB: z.coerce.number().positive().max(1_000_000).default(50),
  /** Hours from one scheduled drill of a pod's backups to the next; 0: none. */
  CENTRAL_BACKUP_DRILL_HOURS: z.coerce.number().int().min(0).max(8_760).default(720),
  /**
   * Seconds between two settlements of a running pod; what is charged does not depend on it. What a rental holds, 15
   * minutes, covers two of them (marketplace reference 2.3.1).
   */
  CENTRAL_METER_TICK_SECONDS: z.coerce.number().int().min(1).max(450).default(60),
  /** Hours for which topped-up credit, which its payer may dispute, can be spent and not yet be transferred; 0: none. */
  CENTRAL_TOP_UP_WAIT_HOURS: z.coerce.number().int().min(0).max(8_760).default(24),
  /** What the data of each volume may come to. */
  CENTRAL_VOLUME_GIB: z.coerce.number().positive().max(1_000_000).default(20),
  /** Below which restic finds repositories, each by its id; without it they lie here. */
  CENTRAL_BACKUP_REPOSITORY: BackupRepository.optional(),
  /** Handed to nodes under their names less `CENTRAL_BACKUP_`. */
  CENTRAL_BACKUP_AWS_ACCESS_KEY_ID: z.string().optional(),
  CENTRAL_BACKUP_AWS_SECRET_ACCESS_KEY: secret(z.string().optional()),
  CENTRAL_BACKUP_AWS_DEFAULT_REGION: z.string().optional(),
  CENTRAL_BACKUP_RESTIC_REST_USERNAME: z.string().optional(),
  CENTRAL_BACKUP_RESTIC_REST_PASSWORD: secret(z.string().optional()),
  /** All of these but the scope, or none. */
  CENTRAL_CHAT_AUTHORIZE_URL: HttpUrl.optional(),
  CENTRAL_CHAT_TOKEN_URL: HttpUrl.optional(),
  CENTRAL_CHAT_USER_URL: HttpUrl.optional(),
  CENTRAL_CHAT_CLIENT_ID: z.string().optional(),
  CENTRAL_CHAT_CLIENT_SECRET: secret(z.string().optional()),
  /** The console's page that people come back to. */
  CENTRAL_CHAT_REDIRECT_URL: HttpUrl.optional(),
  CENTRAL_CHAT_SCOPE: z.string().default('identify'),
  /** Base address of the central miner server; without it nothing is synchronised. */
  CENTRAL_MINER_URL: HttpUrl.refine(
    isSecureUrl,
    'https:// away from this machine, for the token goes there',
  ).optional(),
  /** Sent to it as a bearer token. */
  CENTRAL_MINER_TOKEN: secret(z.string().min(1).max(1_000).optional()),
  /** Where people read what checks are about, as this project's README. */
  CENTRAL_DOCS_URL: HttpUrl.optional(),
  /** Below which support shows the channels of pods, each by its name. */
  CENTRAL_CHAT_CHANNEL_URL: HttpUrl.optional(),
  /** What alpha tokens are worth: a JSON file, or where it is had by HTTP. */
  CENTRAL_ALPHA_RATES: AlphaRates.optional(),
  /** Who moves money: nobody, a processor that only acts as if, or Stripe. */
  CENTRAL_PAYMENTS: z.enum(PAYMENTS).default('none'),
  /** Who pays out: nobody, or a processor that only acts as if. */
  ...PayoutVariable.shape,
  CENTRAL_STRIPE_SECRET_KEY: secret(z.string().optional()),
  /** `whsec_…` of the endpoint that leads to /payments/callback. */
  CENTRAL_STRIPE_CALLBACK_SECRET: secret(z.string().optional()),
};

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
/** Variables that go together. */
const GROUPS: readonly (readonly string[])[] = [S3_KEYS, CHAT_MEMBERS, STRIPE_SECRETS];

/** What these variables have to be like together. */
export function surroundingProblems(
  { CENTRAL_PAYMENTS: payments }: Partial<SurroundingsConfig>,
  isSet: IsSet,
): ConfigProblem[] {
  const problems = GROUPS.flatMap((names) => allOrNone(names, isSet));
  const name = 'CENTRAL_PAYMENTS';
  const hasSecrets = STRIPE_SECRETS.some(isSet);
  if (payments === 'stripe' && !hasSecrets) {
    problems.push({ name, message: `${name}: stripe needs ${STRIPE_SECRETS.join(' and ')}` });
  }
  // Real secrets beside payments that are none: one of the two is a mistake.
  if (payments !== undefined && payments !== 'stripe' && hasSecrets) {
    problems.push({ name, message: `${name}: set it to stripe, or remove Stripe's secrets` });
  }
  return problems;
}

const Schema = z.object(SURROUNDINGS);
const SPEC: ConfigSpec<typeof SURROUNDINGS> = {
  schema: Schema,
  prefix: 'CENTRAL_',
  rules: surroundingProblems,
};

export type SurroundingsConfig = z.output<typeof Schema>;

/** Only these variables out of an environment that may hold others. Throws ConfigError naming every wrong one. */
export function readSurroundings(environment: Environment): SurroundingsConfig {
  return parseConfig(SPEC, environment);
}

/** Variables that go together: null when they are not set, of which `rules` let no half pass. */
export function wholeGroup<Name extends keyof SurroundingsConfig>(
  config: SurroundingsConfig,
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
