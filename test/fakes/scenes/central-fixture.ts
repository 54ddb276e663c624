/** A central API on an empty database and a manual clock, for tests that inject requests. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { InjectOptions } from 'fastify';
import { ApiError } from '#shared/runtime/errors.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createSealing } from '#shared/signing/sealing.ts';
import { changeOperatorRole } from '../../../validator/central/accounts/account/operator-role.service.ts';
import { deriveKey } from '../../../validator/central/accounts/auth/derived-key.ts';
import { createCentral } from '../../../validator/central/app.ts';
import type {
  CentralOptions,
  CentralPorts,
} from '../../../validator/central/platform/central-deps.ts';
import { withSealedColumns } from '../../../validator/central/platform/database/sealed-columns.ts';
import type { Database } from '../../../validator/central/platform/database/tables.ts';
import type { Agents } from '../../../validator/central/platform/ports.ts';
import { INTACT_DATABASE } from '../../../validator/database/database-watch.ts';
import { hotkey } from '../../fixtures/cycle-set.ts';
import { createManualClock, type ManualClock } from '../manual-clock.ts';
import { createTestDatabase } from './central-database.ts';
import { rentalRecorder } from './rental-recorder.ts';

/** Dependencies of the central API that a test may replace. Default database: a new, empty one. */
type Outside = Partial<
  Pick<
    CentralPorts,
    | 'agents'
    | 'guard'
    | 'installLocal'
    | 'log'
    | 'mailer'
    | 'objects'
    | 'chat'
    | 'centralMiner'
    | 'channels'
    | 'db'
    | 'databaseHealth'
    | 'backupStorage'
    | 'pruneBackups'
    | 'metrics'
    | 'alphaRates'
    | 'addresses'
    | 'collateralFeed'
    | 'payments'
    | 'payoutProcessor'
  >
>;

/** The central API's secret in tests. */
export const TEST_SECRET = Uint8Array.from({ length: 32 }, (_, index) => index);

/**
 * Writes the key files of a central API whose database a test has created: the API creates no keys for an existing
 * database.
 */
export function writeCentralKeys(home: string): void {
  writeFileSync(join(home, 'central.secret'), TEST_SECRET, { mode: 0o600 });
  writeFileSync(join(home, 'central.seed'), '0a'.repeat(32), { mode: 0o600 });
}

export type TestCentralOverrides = Partial<CentralOptions> & Outside & { clock?: ManualClock };

/** An account that signed up and logged in. */
export type TestAccount = {
  id: string;
  email: string;
  password: string;
  apiKey: string;
  token: string;
  /** Request headers with its API key, and with its session. */
  key: { 'x-api-key': string };
  session: { authorization: string };
};

const PASSWORD = 'correct horse battery';
const CREDIT_UUSD = 10_000_000;

/**
 * Rate limit that tests do not reach; they send more requests at one instant than the default limits allow in a minute.
 */
const RATE = { quota: 1_000_000, windowMs: 60_000 };
const NO_LIMITS = { address: RATE, credential: RATE, urgent: RATE, login: RATE, search: RATE };

/** Low hashing cost, because most tests sign up and log in only as setup; password.test.ts covers the real cost. */
const CHEAP_PASSWORDS = { memory: 64, passes: 1, parallelism: 1 };

const noAgents: Agents = {
  hotkey: hotkey(5),
  gateway: { host: '127.0.0.1', port: 8_090, hotkey: hotkey(6) },
  clientOf: (executorId) => {
    throw new Error(`no agent ${executorId} in this test`);
  },
  terminalOf: (executorId) => {
    throw new Error(`no agent ${executorId} in this test`);
  },
  checkNow: (executorId) => {
    throw new Error(`no agent ${executorId} in this test`);
  },
  signedDigest: async () => {
    throw new ApiError('upstream_unavailable', 'no validator in this test');
  },
  rewardShares: async () => {
    throw new ApiError('upstream_unavailable', 'no validator in this test');
  },
  record: async () => {
    throw new ApiError('upstream_unavailable', 'no validator in this test');
  },
};

/** Returns a handle that opens sealed columns, for tests that call stores and services themselves. */
export function openedBy(db: Database, secret: Uint8Array): Database {
  const key = deriveKey(secret, 'environment-sealing');
  const opened = withSealedColumns(db, createSealing({ key, random: systemRandom }));
  return Object.assign(opened, { destroy: () => db.destroy() });
}

export type TestCentral = Awaited<ReturnType<typeof createTestCentral>>;

/** Creates the central API. The caller must call `close()`, which also closes the database. */
export async function createTestCentral(overrides: TestCentralOverrides = {}) {
  const { agents = noAgents, guard, log, mailer, objects, chat, channels, ...rest } = overrides;
  const {
    backupStorage = null,
    pruneBackups = null,
    metrics = null,
    alphaRates = null,
    addresses = null,
    collateralFeed = null,
    installLocal = null,
    centralMiner = null,
    payments = null,
    payoutProcessor = null,
    ...others
  } = rest;
  const { clock = createManualClock(), db = await createTestDatabase(), ...configured } = others;
  const { databaseHealth = INTACT_DATABASE, ...options } = configured;
  const ports: CentralPorts = {
    db: openedBy(db, TEST_SECRET),
    databaseHealth,
    clock,
    random: systemRandom,
    log: log ?? createLog({ name: 'test', level: 'silent' }),
    secret: TEST_SECRET,
    agents,
    ...(guard === undefined ? {} : { guard }),
    mailer: mailer ?? null,
    objects: objects ?? null,
    chat: chat ?? null,
    channels: channels ?? null,
    backupStorage,
    pruneBackups,
    metrics,
    alphaRates,
    addresses,
    collateralFeed,
    installLocal,
    centralMiner,
    payments,
    payoutProcessor,
  };
  const central = await createCentral(ports, {
    validators: [],
    signupCreditUusd: CREDIT_UUSD,
    verifyEmailAtSignup: true,
    trustedProxies: [],
    rateLimits: NO_LIMITS,
    passwordCost: CHEAP_PASSWORDS,
    nodePlaces: 'private',
    allowsLoopback: true,
    ...options,
  });
  const { server } = central;
  const record = rentalRecorder(ports.db);
  let accounts = 0;

  /** Sends a request below /api; a body is sent as JSON. */
  async function call(
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    sent: { headers?: Record<string, string>; body?: InjectOptions['payload'] } = {},
  ) {
    const { headers = {}, body } = sent;
    const response = await server.inject({
      method,
      url: `/api${path}`,
      headers,
      ...(body === undefined ? {} : { payload: body }),
    });
    const received = response.json();
    await record?.({ method, path, sent: body, status: response.statusCode, received });
    return { status: response.statusCode, headers: response.headers, body: received };
  }

  async function signUp(): Promise<TestAccount> {
    accounts += 1;
    const email = `user${accounts}@example.com`;
    const body = { email, password: PASSWORD };
    const { api_key: apiKey, user } = (await call('POST', '/users', { body })).body;
    const { token } = (await call('POST', '/users/login', { body })).body;
    return {
      id: user.id,
      email,
      password: PASSWORD,
      apiKey,
      token,
      key: { 'x-api-key': apiKey },
      session: { authorization: `Bearer ${token}` },
    };
  }

  /** Grants an account the operator's role, or revokes it. */
  function setOperator({ email }: TestAccount, isOperator = true): Promise<boolean> {
    const change = { email, isOperator, reason: 'runs support', operator: 'ann' };
    return db.transaction().execute((tx) => changeOperatorRole(tx, { clock }, change));
  }

  async function close(): Promise<void> {
    await central.close();
    await db.destroy();
  }

  return { central, server, ports, clock, call, signUp, setOperator, close };
}
