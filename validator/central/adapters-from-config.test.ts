import { expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { readAdaptersConfig } from './adapters-config.ts';
import { createAdapters } from './adapters-from-config.ts';

const open = (environment: Record<string, string>) =>
  createAdapters(readAdaptersConfig(environment), {
    clock: createManualClock(),
    log: createLog({ name: 'test', level: 'silent' }),
    objectFolder: '/objects',
    backupFolder: '/backups',
  });

it('stores mails and uploads locally and has no chat platform or trusted proxy if no variable is set', () => {
  expect(open({ CENTRAL_DATABASE: 'another reader’s' })).toEqual({
    ports: {
      mailer: null,
      objects: { folder: '/objects' },
      chat: null,
      backupStorage: null,
      centralMiner: null,
      alphaRates: null,
      addresses: null,
      collateralFeed: null,
      backupFolder: { folder: '/backups', bytesPerAccount: 50 * 1024 ** 3 },
      pruneBackups: expect.any(Function),
      payments: null,
      payoutProcessor: null,
    },
    options: {
      trustedProxies: [],
      apiKeysRetrievable: true,
      consoleUrl: null,
      channelUrl: null,
      webhookTargets: 'public',
      nodePlaces: 'public',
      supportEmail: null,
      docsUrl: null,
      backupDrillHours: 720,
      meterTickMs: 60_000,
      launchLimitMs: 600_000,
      syncIntervalMs: 10_000,
      syncConcurrency: 64,
      topUpWaitMs: 86_400_000,
      publicOrigin: null,
      volumeLimitBytes: 20 * 1024 ** 3,
    },
  });
});

it('creates all adapters if all variables are set', () => {
  const { ports, options } = open({
    CENTRAL_SMTP_URL: 'smtp://user:hush@mail.example:587',
    CENTRAL_S3_BUCKET: 'uploads',
    CENTRAL_TRUSTED_PROXIES: '10.0.0.0/8, 2001:db8::/32,127.0.0.1',
    CENTRAL_API_KEYS_RETRIEVABLE: 'false',
    CENTRAL_PUBLIC_ORIGIN: 'https://api.example/',
    CENTRAL_CONSOLE_URL: 'https://console.example',
    CENTRAL_CHAT_CHANNEL_URL: 'https://chat.example/c',
    CENTRAL_SUPPORT_EMAIL: 'support@market.example',
    CENTRAL_DOCS_URL: 'https://docs.example/readme',
    CENTRAL_MINER_URL: 'https://miner.example/v1',
    CENTRAL_MINER_TOKEN: 'hush',
    CENTRAL_BACKUP_DRILL_HOURS: '24',
    CENTRAL_METER_TICK_SECONDS: '10',
    CENTRAL_LAUNCH_LIMIT_MINUTES: '5',
    CENTRAL_SYNC_INTERVAL_SECONDS: '60',
    CENTRAL_SYNC_CONCURRENCY: '2',
    CENTRAL_TOP_UP_WAIT_HOURS: '1',
    CENTRAL_VOLUME_GIB: '1.5',
    CENTRAL_ALPHA_RATES: 'https://rates.example/alpha',
    CENTRAL_PAYMENTS: 'stripe',
    CENTRAL_STRIPE_SECRET_KEY: 'sk_live_hush',
    CENTRAL_STRIPE_CALLBACK_SECRET: 'whsec_hush',
  });
  expect(ports.alphaRates).toMatchObject({ subnets: expect.any(Function) });
  expect(ports.payments).toMatchObject({ name: 'stripe' });
  expect(open({ CENTRAL_PAYMENTS: 'simulated' }).ports.payments).toBe('simulated');
  expect(open({ CENTRAL_PAYOUTS: 'simulated' }).ports.payoutProcessor).toBe('simulated');
  expect(open({ CENTRAL_METER_TICK_SECONDS: '450' }).options.meterTickMs).toBe(450_000);
  expect(ports.mailer).not.toBeNull();
  expect(ports.centralMiner).toMatchObject({ host: 'miner.example', port: 443 });
  expect(ports.objects).toMatchObject({ sign: expect.any(Function) });
  expect(options).toEqual({
    trustedProxies: ['10.0.0.0/8', '2001:db8::/32', '127.0.0.1'],
    webhookTargets: 'public',
    nodePlaces: 'public',
    apiKeysRetrievable: false,
    consoleUrl: 'https://console.example',
    channelUrl: 'https://chat.example/c',
    supportEmail: 'support@market.example',
    docsUrl: 'https://docs.example/readme',
    backupDrillHours: 24,
    meterTickMs: 10_000,
    launchLimitMs: 300_000,
    syncIntervalMs: 60_000,
    syncConcurrency: 2,
    topUpWaitMs: 3_600_000,
    publicOrigin: 'https://api.example',
    volumeLimitBytes: 1.5 * 1024 ** 3,
  });
});

it.each([
  [{ CENTRAL_TRUSTED_PROXIES: '10.0.0.0/33' }, /CENTRAL_TRUSTED_PROXIES/],
  [{ CENTRAL_TRUSTED_PROXIES: 'everybody' }, /CENTRAL_TRUSTED_PROXIES/],
  [{ CENTRAL_SMTP_URL: 'http://user:hush@mail.example' }, /CENTRAL_SMTP_URL/],
  [{ CENTRAL_CHAT_CLIENT_ID: 'x' }, /CENTRAL_CHAT_TOKEN_URL.*: not set; set all of .*, or none/],
  [{ CENTRAL_S3_BUCKET: 'b', CENTRAL_S3_ACCESS_KEY_ID: 'x' }, /CENTRAL_S3_SECRET_ACCESS_KEY/],
  [{ CENTRAL_BACKUP_REPOSITORY: 'backups' }, /CENTRAL_BACKUP_REPOSITORY .*: an absolute path/],
  [
    { CENTRAL_BACKUP_REPOSITORY: 'rest:https://me:hush@x' },
    /CENTRAL_BACKUP_REPOSITORY .*: set credentials/,
  ],
  [
    { CENTRAL_MINER_URL: 'http://miner.example', CENTRAL_MINER_TOKEN: 'hush' },
    /CENTRAL_MINER_URL .*: https/,
  ],
  [{ CENTRAL_ALPHA_RATES: '/no/such/file' }, /CENTRAL_ALPHA_RATES/],
  [{ CENTRAL_ADDRESS_TABLE: '/no/such/file' }, /CENTRAL_ADDRESS_TABLE/],
  [{ CENTRAL_COLLATERAL_FEED: '/no/such/file' }, /CENTRAL_COLLATERAL_FEED/],
  [{ CENTRAL_COLLATERAL_FEED: 'http://feed.example' }, /CENTRAL_COLLATERAL_FEED/],
  [{ CENTRAL_PAYMENTS: 'stripe' }, /CENTRAL_PAYMENTS: stripe needs CENTRAL_STRIPE_SECRET_KEY/],
  [
    { CENTRAL_PAYMENTS: 'stripe', CENTRAL_STRIPE_SECRET_KEY: 'hush' },
    /CENTRAL_STRIPE_CALLBACK_SECRET: not set; set all of/,
  ],
  [
    {
      CENTRAL_PAYMENTS: 'simulated',
      CENTRAL_STRIPE_SECRET_KEY: 'hush',
      CENTRAL_STRIPE_CALLBACK_SECRET: 'hush',
    },
    /CENTRAL_PAYMENTS: set it to stripe/,
  ],
  [{ CENTRAL_BACKUP_GIB: '0' }, /CENTRAL_BACKUP_GIB/],
  [{ CENTRAL_BACKUP_DRILL_HOURS: '-1' }, /CENTRAL_BACKUP_DRILL_HOURS/],
  [{ CENTRAL_LAUNCH_LIMIT_MINUTES: '121' }, /CENTRAL_LAUNCH_LIMIT_MINUTES/],
  [{ CENTRAL_SYNC_INTERVAL_SECONDS: '61' }, /CENTRAL_SYNC_INTERVAL_SECONDS/],
  [{ CENTRAL_SYNC_CONCURRENCY: '1' }, /CENTRAL_SYNC_CONCURRENCY/],
  [{ CENTRAL_VOLUME_GIB: '-1' }, /CENTRAL_VOLUME_GIB/],
  [{ CENTRAL_METER_TICK_SECONDS: '0' }, /CENTRAL_METER_TICK_SECONDS/],
  [{ CENTRAL_METER_TICK_SECONDS: '451' }, /CENTRAL_METER_TICK_SECONDS/],
  [{ CENTRAL_API_KEYS_RETRIEVABLE: 'perhaps' }, /CENTRAL_API_KEYS_RETRIEVABLE/],
])("rejects %j with the variable's name and without its password", (environment, message) => {
  expect(() => open(environment as Record<string, string>)).toThrow(message);
  expect(() => open(environment as Record<string, string>)).not.toThrow(/hush/);
});

it('stores backups at the configured location; nodes receive only the credentials of that location', async () => {
  const { ports } = open({
    CENTRAL_BACKUP_REPOSITORY: 'rest:https://rest.example/pods',
    CENTRAL_BACKUP_RESTIC_REST_USERNAME: 'name',
    CENTRAL_BACKUP_RESTIC_REST_PASSWORD: 'hush',
    CENTRAL_S3_BUCKET: 'uploads',
    AWS_ACCESS_KEY_ID: 'our own',
  });
  expect(ports.backupFolder).toBeNull();
  const repository = { id: 'r', accountId: 'a' };
  expect(await ports.backupStorage?.place(repository, 'append')).toEqual({
    location: 'rest:https://rest.example/pods/r',
    environment: { RESTIC_REST_USERNAME: 'name', RESTIC_REST_PASSWORD: 'hush' },
  });
  expect(open({ CENTRAL_BACKUP_GIB: '0.5' }).ports.backupFolder?.bytesPerAccount).toBe(2 ** 29);
});

it('serves backups in a bucket itself, so that nodes receive no credentials of the bucket', () => {
  const bucket = {
    CENTRAL_BACKUP_REPOSITORY: 's3:https://s3.example/pods/backups',
    CENTRAL_BACKUP_AWS_ACCESS_KEY_ID: 'key',
    CENTRAL_BACKUP_AWS_SECRET_ACCESS_KEY: 'hush',
  };
  const { ports } = open({ ...bucket, CENTRAL_BACKUP_GIB: '1' });
  expect(ports.backupStorage).toBeNull();
  expect(ports.backupFolder).toMatchObject({
    folder: '/backups',
    bytesPerAccount: 1024 ** 3,
    bucket: { create: expect.any(Function) },
  });
  expect(() => open({ ...bucket, CENTRAL_BACKUP_REPOSITORY: 's3:https://s3.example' })).toThrow(
    's3:https://HOST/BUCKET',
  );
});
