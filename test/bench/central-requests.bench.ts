/** Cost of the central API's work: a small authenticated read over HTTP, and the transaction of a rental. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import Fastify from 'fastify';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { openSqlite } from '#shared/runtime/sqlite.ts';
import { rentIn } from '../../validator/central/market/rentals/rental.service.ts';
import { openCentralDatabase } from '../../validator/central/platform/database/database.ts';
import type { Database } from '../../validator/central/platform/database/tables.ts';
import type { UserIdentity } from '../../validator/central/platform/identity.ts';
import { createTestCentral, type TestCentral } from '../fakes/scenes/central-fixture.ts';
import { DEFAULT_TEMPLATE, PUBLIC_KEY } from '../fakes/scenes/market-fixture.ts';
import { median, type Row, ratioAtLeast, valueAtLeast } from '../measure/row.ts';
import type { Load } from './http-load.ts';
import { seedMarket } from './market-seed.ts';
import { originOf } from './origin.ts';
import { requestContextCost } from './request-context.bench.ts';

const ROUNDS = 3;
const CONNECTIONS = 16;
const SECONDS = 2;
const RENTAL = { pod_name: 'pod', template_id: DEFAULT_TEMPLATE, gpu_count: 1 };
const SMALL = '/api/ssh-keys';
const RENTALS = 2_000;
/** Accounts that rent the nodes in turn. */
const RENTERS = 20;
const LEAST_RENTALS = 1_000;
const MS_PER_SECOND = 1_000;
/** Balance of each renter in micro-dollars; no benchmark uses it up. */
const BALANCE_UUSD = 1_000_000_000_000;

export async function centralRequests(): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-bench-'));
  try {
    const db = await openCentralDatabase(join(folder, 'central.db'));
    const central = await createTestCentral({ db, signupCreditUusd: BALANCE_UUSD });
    try {
      return [
        await smallRead(central),
        await rentals(central, db, folder),
        await requestContextCost(),
      ];
    } finally {
      await central.close();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Responses per second, in alternating rounds; a separate thread sends each server's requests. */
async function smallRead({ server, signUp, call }: TestCentral): Promise<Row> {
  const renter = await signUp();
  const headers = renter.key;
  await server.listen({ host: '127.0.0.1', port: 0 });
  const rows: unknown = (await call('GET', '/ssh-keys', { headers })).body;
  const bare = Fastify();
  bare.get(SMALL, async () => rows);
  await bare.listen({ host: '127.0.0.1', port: 0 });
  const load = (origin: string) =>
    answersPerSecond({
      url: `${origin}${SMALL}`,
      headers,
      connections: CONNECTIONS,
      seconds: SECONDS,
    });
  const ours: number[] = [];
  const reference: number[] = [];
  try {
    for (let round = 0; round < ROUNDS; round += 1) {
      reference.push(await load(originOf(bare)));
      ours.push(await load(originOf(server)));
    }
  } finally {
    await bare.close();
  }
  const rates = { ours: median(ours), reference: median(reference) };
  return ratioAtLeast('small authenticated GET', '/s', 'bare fastify, same answer', rates, 0.5);
}

function answersPerSecond(load: Load): Promise<number> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./http-load.ts', import.meta.url), { workerData: load });
    worker.once('message', resolve);
    worker.once('error', reject);
  });
}

/**
 * Sequential rentals, each committed with `synchronous = FULL`, compared with transactions that insert one small row on
 * the same disk.
 */
async function rentals(central: TestCentral, db: Database, folder: string): Promise<Row> {
  const identities: UserIdentity[] = [];
  for (let index = 0; index < RENTERS; index += 1) identities.push(await renterIn(central));
  await seedMarket(db, RENTALS);
  const nodes = await db.selectFrom('executors').select('id').where('slots_free', '>', 0).execute();
  const afterSpend = async () => undefined;
  const beginRestore = async () => undefined;
  const attachSecrets = async () => undefined;
  const launchLimitMs = 600_000;
  const deps = {
    clock: systemClock,
    random: systemRandom,
    afterSpend,
    beginRestore,
    attachSecrets,
    launchLimitMs,
  };
  const actor = { auth: 'session' as const, apiKeyId: null, requestId: 'bench-request' };
  let rented = 0;
  const ours = await perSecond(nodes, async ({ id: executorId }) => {
    const identity = identities[rented++ % RENTERS];
    if (identity === undefined) throw new Error('no rental succeeded');
    const request = { executorId, identity, actor, body: RENTAL };
    await db.transaction().execute((tx) => rentIn(tx, deps, request));
  });
  const raw = openSqlite(join(folder, 'reference.db'));
  raw.exec('create table pods (id text primary key)');
  const insert = raw.prepare('insert into pods values (?)');
  const reference = await perSecond(nodes, async ({ id }) => void insert.run(id));
  raw.close();
  return valueAtLeast('rentals', '/s', 'one-row commits', { ours, reference }, LEAST_RENTALS);
}

/** Creates an account that can rent and logs it in. */
async function renterIn(central: TestCentral): Promise<UserIdentity> {
  const { id: accountId, key: headers } = await central.signUp();
  const body = { name: 'mine', public_key: PUBLIC_KEY };
  await central.call('POST', '/ssh-keys', { headers, body });
  return {
    kind: 'user',
    accountId,
    credential: { type: 'session', sessionId: '' },
    source: 'sdk',
    clientVersion: null,
  };
}

async function perSecond<T>(items: readonly T[], work: (item: T) => Promise<void>) {
  const beganMs = systemClock.monotonicMs();
  for (const item of items) await work(item);
  return (items.length * MS_PER_SECOND) / (systemClock.monotonicMs() - beganMs);
}
