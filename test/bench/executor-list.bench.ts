/**
 * GET /executors over 100,000 nodes: a page of a thousand compared with a route that returns the same bytes, a filtered
 * page compared with its SQL statement.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Fastify from 'fastify';
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { openSqlite } from '#shared/runtime/sqlite.ts';
import { createCentral } from '../../validator/central/app.ts';
import { openCentralDatabase } from '../../validator/central/platform/database/database.ts';
import type { Agents } from '../../validator/central/platform/ports.ts';
import { hotkey } from '../fixtures/cycle-set.ts';
import { median, type Row, ratioAtMost } from '../measure/row.ts';
import { seedMarket } from './market-seed.ts';
import { originOf } from './origin.ts';

const NODES = 100_000;
/** Number of rounds: enough to warm up both sides, as on a server. */
const ROUNDS = 150;
const CONNECTION = new Agent({ keepAlive: true });
const PAGE = '/api/executors?size=1000';
const FILTERED =
  '/api/executors?size=100&machine_names=NVIDIA%20H200&price_lte=0.9&gpu_count_gte=4&view=summary';
/** Index for the reference statement, which selects the same nodes. */
const INDEX = `create index bench_market on executors (state, price_uusd_per_gpu_hour, id, paused,
  provider_id, machine_name, min_gpu_count, slots_total, slots_free)`;
const STATEMENT = `select executors.*, providers.hotkey from executors
  join providers on providers.id = executors.provider_id
  where state = 'verified' and paused = 0 and opted_in = 1 and banned_at is null
    and slots_free >= 1 and slots_free >= coalesce(min_gpu_count, slots_total)
    and machine_name = 'NVIDIA H200' and price_uusd_per_gpu_hour <= 900000 and slots_free >= 4
  order by price_uusd_per_gpu_hour, executors.id limit 100`;
/** Statement whose change invalidates the cached filter of every process. */
const CHANGE = `update executors set price_uusd_per_gpu_hour = price_uusd_per_gpu_hour + 1
  where id = '00000000-0000-4000-9000-000000000001'`;

const noAgents: Agents = {
  hotkey: hotkey(5),
  gateway: { host: '127.0.0.1', port: 8_090, hotkey: hotkey(6) },
  clientOf: () => unreachable(),
  terminalOf: () => unreachable(),
  checkNow: () => unreachable(),
  signedDigest: () => unreachable(),
  rewardShares: () => unreachable(),
  record: () => unreachable(),
};

export async function executorList(): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-bench-'));
  const file = join(folder, 'central.db');
  const db = await openCentralDatabase(file);
  await seedMarket(db, NODES);
  const central = await createCentral(
    {
      db,
      clock: systemClock,
      random: systemRandom,
      agents: noAgents,
      log: createLog({ name: 'bench', level: 'silent' }),
      secret: new Uint8Array(32).fill(7),
    },
    { validators: [], signupCreditUusd: 0, verifyEmailAtSignup: true, trustedProxies: [] },
  );
  const bare = Fastify();
  try {
    await central.server.listen({ host: '127.0.0.1', port: 0 });
    const ours = originOf(central.server);
    const rows: unknown = await (await fetch(`${ours}${PAGE}`)).json();
    bare.get('/rows', async () => rows);
    await bare.listen({ host: '127.0.0.1', port: 0 });
    const page = await sideBySide(
      () => read(`${ours}${PAGE}`),
      () => read(`${originOf(bare)}/rows`),
    );
    const raw = openSqlite(file);
    raw.exec(INDEX);
    const statement = raw.prepare(STATEMENT);
    const filter = () => read(`${ours}${FILTERED}`);
    const filtered = await sideBySide(filter, async () => void statement.all());
    const change = raw.prepare(CHANGE);
    const changed = await sideBySide(
      filter,
      async () => void statement.all(),
      () => void change.run(),
    );
    raw.close();
    return [
      ratioAtMost('page of 1,000 of 100,000 nodes', 'ms', 'bare fastify, same rows', page, 1),
      ratioAtMost('filtered list over 100,000 nodes', 'ms', 'raw statement', filtered, 2),
      ratioAtMost('the same after a change of one node', 'ms', 'raw statement', changed, 2),
    ];
  } finally {
    CONNECTION.destroy();
    await bare.close();
    await central.close();
    await db.destroy();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Medians of alternating rounds, so that load on the host affects both sides alike. */
async function sideBySide(
  ours: () => Promise<void>,
  reference: () => Promise<void>,
  before?: () => void,
) {
  const times = { ours: [] as number[], reference: [] as number[] };
  for (let round = 0; round < ROUNDS; round += 1) {
    before?.();
    times.ours.push(await timed(ours));
    times.reference.push(await timed(reference));
  }
  return { ours: median(times.ours), reference: median(times.reference) };
}

/** Reads a URL with a minimal client: `fetch` would take a third of the shorter times. */
function read(url: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const request = get(url, { agent: CONNECTION }, (response) => {
    if (response.statusCode === 200) response.on('end', resolve).on('error', reject).resume();
    else reject(new Error(`${url}: ${response.statusCode}`));
  });
  request.on('error', reject);
  return promise;
}

async function timed(work: () => Promise<void>): Promise<number> {
  const beganMs = systemClock.monotonicMs();
  await work();
  return systemClock.monotonicMs() - beganMs;
}

function unreachable(): never {
  throw new Error('no agent in this benchmark');
}
