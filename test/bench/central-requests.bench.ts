/** Cost of the central API's requests: a small authenticated read over HTTP, a rental, the context of a request. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import Fastify from 'fastify';
import { openSqlite } from '#shared/runtime/sqlite.ts';
import { openCentralDatabase } from '../../validator/central/platform/database/database.ts';
import { createTestCentral, type TestCentral } from '../fakes/scenes/central-fixture.ts';
import { PUBLIC_KEY } from '../fakes/scenes/market-fixture.ts';
import { median, type Row, ratioAtLeast } from '../measure/row.ts';
import type { Load } from './http-load.ts';
import { originOf } from './origin.ts';
import { rentals } from './rentals.bench.ts';
import { requestContextCost } from './request-context.bench.ts';

const ROUNDS = 3;
const CONNECTIONS = 16;
const SECONDS = 2;
const SMALL = '/api/ssh-keys';
const LEAST_SHARE = 0.6;
/** Balance of each renter in micro-dollars; no benchmark uses it up. */
const BALANCE_UUSD = 1_000_000_000_000;

export async function centralRequests(): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-bench-'));
  try {
    const file = join(folder, 'central.db');
    const db = await openCentralDatabase(file);
    const central = await createTestCentral({ db, signupCreditUusd: BALANCE_UUSD });
    try {
      return [
        await smallRead(central, file),
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

/**
 * Responses per second, in alternating rounds; a separate thread sends each server's requests. The reference makes the
 * same two look-ups: the key and the rows of its account.
 */
async function smallRead({ server, signUp, call }: TestCentral, file: string): Promise<Row> {
  const { apiKey, key: headers } = await signUp();
  const body = { name: 'mine', public_key: PUBLIC_KEY };
  await call('POST', '/ssh-keys', { headers, body });
  await server.listen({ host: '127.0.0.1', port: 0 });
  const bare = bareServer(file, apiKey);
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
  const against = 'bare fastify, the same two look-ups';
  return ratioAtLeast('small authenticated GET', '/s', against, rates, LEAST_SHARE);
}

/** Serves the keys of the only account as the database stores them. */
function bareServer(file: string, apiKey: string) {
  const database = openSqlite(file);
  const byHash = database.prepare('select * from api_keys where key_hash = ?');
  const ofAccount = database.prepare('select * from ssh_keys where account_id = ?');
  const stored = database.prepare('select key_hash from api_keys').get()?.['key_hash'];
  const server = Fastify();
  server.addHook('onClose', async () => database.close());
  server.get(SMALL, async ({ headers }) => {
    const isKnown = headers['x-api-key'] === apiKey;
    const key = byHash.get(isKnown ? String(stored) : '');
    return ofAccount.all(String(key?.['account_id']));
  });
  return server;
}

function answersPerSecond(load: Load): Promise<number> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./http-load.ts', import.meta.url), { workerData: load });
    worker.once('message', resolve);
    worker.once('error', reject);
  });
}
