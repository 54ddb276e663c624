/** Creates the adapters of external services, and the options of the central API, from the configuration. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import {
  type AdaptersConfig,
  BACKUP_KEYS,
  CHAT_MEMBERS,
  S3_KEYS,
  STRIPE_SECRETS,
  wholeGroup,
} from './adapters-config.ts';
import { openAddressTable } from './platform/adapters/address-table.ts';
import { createFileAlphaRates, createHttpAlphaRates } from './platform/adapters/alpha-rates.ts';
import {
  createFileCollateralFeed,
  createHttpCollateralFeed,
} from './platform/adapters/collateral-feed.ts';
import { createHttpCentralMiner } from './platform/adapters/http-central-miner.ts';
import { createOAuthChat } from './platform/adapters/oauth-chat.ts';
import { createResticLocation, createResticPrune } from './platform/adapters/restic.ts';
import { createS3Bucket, parseS3Address } from './platform/adapters/s3-bucket.ts';
import { createS3Objects } from './platform/adapters/s3-objects.ts';
import { createSmtpMailer } from './platform/adapters/smtp-mailer.ts';
import { createStripePayments } from './platform/adapters/stripe-payments.ts';
import type { CentralOptions, CentralPorts } from './platform/central-deps.ts';

const GIB = 1024 ** 3;

export type Adapters = {
  ports: Pick<
    CentralPorts,
    | 'mailer'
    | 'objects'
    | 'chat'
    | 'centralMiner'
    | 'backupStorage'
    | 'backupFolder'
    | 'pruneBackups'
    | 'alphaRates'
    | 'addresses'
    | 'collateralFeed'
    | 'payments'
    | 'payoutProcessor'
  >;
  options: Pick<
    CentralOptions,
    | 'trustedProxies'
    | 'apiKeysRetrievable'
    | 'consoleUrl'
    | 'publicOrigin'
    | 'channelUrl'
    | 'supportEmail'
    | 'docsUrl'
    | 'backupDrillHours'
    | 'meterTickMs'
    | 'launchLimitMs'
    | 'syncIntervalMs'
    | 'syncConcurrency'
    | 'topUpWaitMs'
    | 'volumeLimitBytes'
    | 'webhookTargets'
    | 'nodePlaces'
  >;
};

/** Folders for uploads and backups without an external store. */
export type AdapterFolders = { objectFolder: string; backupFolder: string };

/** Adapters connect and load their libraries on first use. */
export function createAdapters(
  config: AdaptersConfig,
  { clock, log, objectFolder, backupFolder }: AdapterFolders & { clock: Clock; log: Log },
): Adapters {
  return {
    ports: {
      mailer: mailerOf(config),
      objects: objectsOf(config) ?? { folder: objectFolder },
      chat: chatOf(config, clock),
      centralMiner: centralMinerOf(config, clock),
      ...backupsOf(config, backupFolder),
      pruneBackups: createResticPrune(runCommand, { clock }),
      alphaRates: alphaRatesOf(config, clock),
      addresses: addressesOf(config, { clock, log }),
      collateralFeed: collateralFeedOf(config, clock),
      payments: paymentsOf(config, clock),
      payoutProcessor: config.CENTRAL_PAYOUTS === 'simulated' ? 'simulated' : null,
    },
    options: {
      trustedProxies: config.CENTRAL_TRUSTED_PROXIES,
      apiKeysRetrievable: config.CENTRAL_API_KEYS_RETRIEVABLE,
      consoleUrl: config.CENTRAL_CONSOLE_URL ?? null,
      channelUrl: config.CENTRAL_CHAT_CHANNEL_URL ?? null,
      supportEmail: config.CENTRAL_SUPPORT_EMAIL ?? null,
      docsUrl: config.CENTRAL_DOCS_URL ?? null,
      backupDrillHours: config.CENTRAL_BACKUP_DRILL_HOURS,
      meterTickMs: config.CENTRAL_METER_TICK_SECONDS * 1_000,
      launchLimitMs: config.CENTRAL_LAUNCH_LIMIT_MINUTES * 60_000,
      syncIntervalMs: config.CENTRAL_SYNC_INTERVAL_SECONDS * 1_000,
      syncConcurrency: config.CENTRAL_SYNC_CONCURRENCY,
      topUpWaitMs: config.CENTRAL_TOP_UP_WAIT_HOURS * 3_600_000,
      volumeLimitBytes: Math.floor(config.CENTRAL_VOLUME_GIB * GIB),
      webhookTargets: config.CENTRAL_WEBHOOK_TARGETS,
      nodePlaces: config.CENTRAL_NODE_PLACES,
      publicOrigin:
        config.CENTRAL_PUBLIC_ORIGIN === undefined
          ? null
          : new URL(config.CENTRAL_PUBLIC_ORIGIN).origin,
    },
  };
}

function centralMinerOf(config: AdaptersConfig, clock: Clock) {
  const { CENTRAL_MINER_URL: baseUrl, CENTRAL_MINER_TOKEN: token = null } = config;
  return baseUrl === undefined ? null : createHttpCentralMiner({ baseUrl, token }, clock);
}

function mailerOf({ CENTRAL_SMTP_URL: url, CENTRAL_MAIL_FROM: from }: AdaptersConfig) {
  return url === undefined ? null : createSmtpMailer({ url, from });
}

function objectsOf(config: AdaptersConfig) {
  if (config.CENTRAL_S3_BUCKET === undefined) return null;
  const pair = wholeGroup(config, S3_KEYS);
  return createS3Objects({
    bucket: config.CENTRAL_S3_BUCKET,
    region: config.CENTRAL_S3_REGION,
    endpoint: config.CENTRAL_S3_ENDPOINT ?? null,
    credentials:
      pair === null
        ? null
        : {
            accessKeyId: pair.CENTRAL_S3_ACCESS_KEY_ID,
            secretAccessKey: pair.CENTRAL_S3_SECRET_ACCESS_KEY,
          },
    publicUrl: config.CENTRAL_S3_PUBLIC_URL ?? null,
  });
}

function addressesOf(
  { CENTRAL_ADDRESS_TABLE: path }: AdaptersConfig,
  deps: { clock: Clock; log: Log },
) {
  return path === undefined ? null : openAddressTable(path, deps);
}

function collateralFeedOf({ CENTRAL_COLLATERAL_FEED: place }: AdaptersConfig, clock: Clock) {
  if (place === undefined) return null;
  if (!/^https?:/.test(place)) return createFileCollateralFeed(place);
  return createHttpCollateralFeed({ url: place, clock });
}

function alphaRatesOf({ CENTRAL_ALPHA_RATES: place }: AdaptersConfig, clock: Clock) {
  if (place === undefined) return null;
  if (!/^https?:/.test(place)) return createFileAlphaRates(place);
  return createHttpAlphaRates({ url: place, clock });
}

function paymentsOf(config: AdaptersConfig, clock: Clock) {
  const secrets = wholeGroup(config, STRIPE_SECRETS);
  if (config.CENTRAL_PAYMENTS !== 'stripe' || secrets === null) {
    return config.CENTRAL_PAYMENTS === 'simulated' ? 'simulated' : null;
  }
  return createStripePayments({
    secretKey: secrets.CENTRAL_STRIPE_SECRET_KEY,
    callbackSecret: secrets.CENTRAL_STRIPE_CALLBACK_SECRET,
    clock,
  });
}

function backupsOf(config: AdaptersConfig, folder: string) {
  const environment = backupVariables(config);
  const bytesPerAccount = Math.floor(config.CENTRAL_BACKUP_GIB * GIB);
  if (config.CENTRAL_BACKUP_REPOSITORY === undefined) {
    return { backupStorage: null, backupFolder: { folder, bytesPerAccount } };
  }
  const prefix = config.CENTRAL_BACKUP_REPOSITORY;
  const address = parseS3Address(prefix);
  if (address !== null) {
    const pair = wholeGroup(config, BACKUP_KEYS);
    const bucket = createS3Bucket({
      ...address,
      region: config.CENTRAL_BACKUP_AWS_DEFAULT_REGION ?? config.CENTRAL_S3_REGION,
      credentials:
        pair === null
          ? null
          : {
              accessKeyId: pair.CENTRAL_BACKUP_AWS_ACCESS_KEY_ID,
              secretAccessKey: pair.CENTRAL_BACKUP_AWS_SECRET_ACCESS_KEY,
            },
    });
    return { backupStorage: null, backupFolder: { folder, bytesPerAccount, bucket } };
  }
  return { backupStorage: createResticLocation({ prefix, environment }), backupFolder: null };
}

function backupVariables(config: AdaptersConfig): Record<string, string> {
  const prefix = 'CENTRAL_BACKUP_';
  return Object.fromEntries(
    Object.entries(config)
      .filter(([name]) => /^CENTRAL_BACKUP_RESTIC_REST_/.test(name))
      .flatMap(([name, value]) =>
        typeof value === 'string' ? [[name.slice(prefix.length), value]] : [],
      ),
  );
}

function chatOf(config: AdaptersConfig, clock: Clock) {
  const chat = wholeGroup(config, CHAT_MEMBERS);
  if (chat === null) return null;
  const options = {
    authorizeUrl: chat.CENTRAL_CHAT_AUTHORIZE_URL,
    tokenUrl: chat.CENTRAL_CHAT_TOKEN_URL,
    userUrl: chat.CENTRAL_CHAT_USER_URL,
    clientId: chat.CENTRAL_CHAT_CLIENT_ID,
    clientSecret: chat.CENTRAL_CHAT_CLIENT_SECRET,
    redirectUrl: chat.CENTRAL_CHAT_REDIRECT_URL,
    scope: config.CENTRAL_CHAT_SCOPE,
  };
  return createOAuthChat(options, clock);
}
