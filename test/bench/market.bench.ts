/**
 * Requests about the whole market with 100,000 nodes, compared with the same requests with 1,000 nodes: statistics,
 * rentals by id and by specification, searches, and reads of a pod beside them. On SQLite and PostgreSQL.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openCentralDatabase } from '../../validator/central/platform/database/database.ts';
import { createDatabaseIn, startPostgresServer } from '../fakes/external/postgres-server.ts';
import { runSql } from '../fakes/scenes/central-database.ts';
import { createTestCentral, type TestCentral } from '../fakes/scenes/central-fixture.ts';
import { DEFAULT_TEMPLATE, PUBLIC_KEY } from '../fakes/scenes/market-fixture.ts';
import { median, type Row, ratioAtMost } from '../measure/row.ts';
import { seedMarket } from './market-seed.ts';

const SMALL = 1_000;
const LARGE = 100_000;
const ROUNDS = 60;
const WARM_UP = 10;
const POD_READS = 400;
const PERCENTILE = 0.99;
/** A hundred thousand nodes may cost this many times what a thousand cost. */
const MOST_RATIO = 3;
/** Balance of the renter in micro-dollars; no benchmark uses it up. */
const BALANCE_UUSD = 1_000_000_000_000;
const PRICE_STEP_UUSD = 3_000;
const BOOKMARKS = 20;
const RENTAL = { pod_name: 'pod', template_id: DEFAULT_TEMPLATE, gpu_count: 1 };
const SPEC = { ...RENTAL, gpu_type: 'H200', max_price_per_gpu_hour: 2.5 };
const UNMET_SPEC = { ...RENTAL, min_vram_gb: 24, max_price_per_gpu_hour: 0.01 };

type Side = TestCentral & { headers: Record<string, string>; nodes: string[]; podId: string };

/** Sends the requests of one round; the round makes requests differ. */
type Requests = (side: Side, round: number) => Promise<unknown>;

const ofMachines: Requests = (side) => ok(side, 'GET', '/machines');
const byId: Requests = (side, round) =>
  ok(side, 'POST', `/executors/${side.nodes[round * 2 + 1]}/rent`, RENTAL);
const bySpec: Requests = (side) => ok(side, 'POST', '/executors/rent-by-spec', SPEC);
const byNewSpec: Requests = (side, round) =>
  ok(side, 'POST', '/executors/rent-by-spec', {
    ...SPEC,
    max_price_per_gpu_hour: 1.5 + round / 1_000,
  });
const byUnmetSpec: Requests = (side) =>
  ok(side, 'POST', '/executors/rent-by-spec', UNMET_SPEC, 409);
const byNewUnmetSpec: Requests = (side, round) =>
  ok(side, 'POST', '/executors/rent-by-spec', { ...UNMET_SPEC, min_vram_gb: 1 + round / 10 }, 409);
/** Above one of a hundred nodes is in this circle. */
const byDistance: Requests = (side) =>
  ok(side, 'GET', '/executors?lat=13.1&lon=13.4&max_distance_mile=200&size=20&view=summary');
const byNewDistance: Requests = (side, round) =>
  ok(
    side,
    'GET',
    `/executors?lat=${12.5 + round / 100}&lon=13.4&max_distance_mile=200&size=20&view=summary`,
  );
const byEmptyDistance: Requests = (side, round) =>
  ok(
    side,
    'GET',
    `/executors?lat=${50 + round / 100}&lon=13.4&max_distance_mile=200&size=20&view=summary`,
  );
const byReliability: Requests = (side) =>
  ok(side, 'GET', '/executors?sort=reliability&size=20&view=summary');
const byBookmark: Requests = (side) =>
  ok(side, 'GET', '/executors?bookmarked=true&size=20&view=summary');

const MEASURED: readonly [string, Requests][] = [
  ['/machines', ofMachines],
  ['rent', byId],
  ['rent-by-spec', bySpec],
  ['rent-by-spec, a new specification each time', byNewSpec],
  ['rent-by-spec, refused with its funnel', byUnmetSpec],
  ['rent-by-spec, refused, a new specification each time', byNewUnmetSpec],
  ['search by distance', byDistance],
  ['search by distance, a new place each time', byNewDistance],
  ['search by distance, a new place without nodes each time', byEmptyDistance],
  ['search by reliability', byReliability],
  ['search for bookmarked nodes', byBookmark],
];

export async function marketSizes(): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-bench-'));
  const server = await startPostgresServer({ keepsCommits: true });
  process.once('exit', server.removeNow);
  try {
    return [
      ...(await compareSizes('SQLite', (name) => join(folder, `${name}.db`))),
      ...(await compareSizes('PostgreSQL', (name) => createDatabaseIn(server.folder, name))),
    ];
  } finally {
    await server.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function compareSizes(
  engine: string,
  databaseOf: (name: string) => string | Promise<string>,
): Promise<Row[]> {
  const small = await marketOf(SMALL, await databaseOf('small'));
  const large = await marketOf(LARGE, await databaseOf('large'));
  try {
    const rows: Row[] = [];
    for (const [name, requests] of MEASURED) {
      const times = await sideBySide(large, small, requests);
      const medians = { ours: median(times.ours), reference: median(times.reference) };
      rows.push(rowOf(`${name}, ${engine}`, medians));
    }
    const reads = await sideBySide(large, small, podBesideMarket, POD_READS);
    const p99 = { ours: percentile(reads.ours), reference: percentile(reads.reference) };
    return [...rows, rowOf(`p99 of a pod's detail beside searches, ${engine}`, p99)];
  } finally {
    await large.close();
    await small.close();
  }
}

function rowOf(name: string, times: { ours: number; reference: number }): Row {
  return ratioAtMost(`${name}: 100,000 nodes`, 'ms', '1,000 nodes', times, MOST_RATIO);
}

/** A central API with a market of this size, whose renter has one pod. */
async function marketOf(nodes: number, address: string): Promise<Side> {
  const db = await openCentralDatabase(address);
  await seedMarket(db, nodes);
  await runSql(db, 'analyze');
  const central = await createTestCentral({ db, signupCreditUusd: BALANCE_UUSD });
  const { key: headers } = await central.signUp();
  const side = { ...central, headers, nodes: await freeNodes(db), podId: '' };
  await ok(side, 'POST', '/ssh-keys', { name: 'mine', public_key: PUBLIC_KEY });
  for (const executor_id of side.nodes.slice(-BOOKMARKS)) {
    await ok(side, 'POST', '/bookmark', { executor_id });
  }
  const rented = await ok(side, 'POST', `/executors/${side.nodes[0]}/rent`, RENTAL);
  return { ...side, podId: String(rented['id']) };
}

async function freeNodes(db: TestCentral['ports']['db']): Promise<string[]> {
  const rows = await db
    .selectFrom('executors')
    .select('id')
    .where('slots_free', '>', 0)
    .orderBy('id')
    .limit(SMALL / 2)
    .execute();
  return rows.map(({ id }) => id);
}

/** Changes the price of a node, as a provider does, so that no answer can be repeated unchanged. */
async function changeNode({ ports, nodes }: Side, round: number): Promise<void> {
  await ports.db
    .updateTable('executors')
    .set({ price_uusd_per_gpu_hour: 300_000 + (round % 900) * PRICE_STEP_UUSD })
    .where('id', '=', nodes.at(-1 - (round % 50)) ?? '')
    .execute();
}

/** Reads a pod while the process answers a request about the whole market. Resolves with the time of the read. */
async function podBesideMarket(side: Side, round: number): Promise<number> {
  const spec = { ...SPEC, dry_run: true };
  const others: Requests[] = [
    ofMachines,
    byUnmetSpec,
    byDistance,
    () => ok(side, 'POST', '/executors/rent-by-spec', spec),
    () => ok(side, 'GET', '/executors?size=100&price_lte=0.9&view=summary'),
  ];
  const other = others[round % others.length]?.(side, round);
  const beganMs = performance.now();
  await ok(side, 'GET', `/pods/${side.podId}`);
  const tookMs = performance.now() - beganMs;
  await other;
  return tookMs;
}

/** Times in milliseconds of alternating rounds, so that load on the host affects both sides alike. */
async function sideBySide(large: Side, small: Side, requests: Requests, rounds = ROUNDS) {
  const times = { ours: [] as number[], reference: [] as number[] };
  for (let round = 0; round < WARM_UP + rounds; round += 1) {
    await changeNode(small, round);
    const reference = await timed(() => requests(small, round));
    await changeNode(large, round);
    const ours = await timed(() => requests(large, round));
    if (round < WARM_UP) continue;
    times.reference.push(reference);
    times.ours.push(ours);
  }
  return times;
}

/** Time of the work, unless the work returns a time that it measured itself. */
async function timed(work: () => Promise<unknown>): Promise<number> {
  const beganMs = performance.now();
  const measured = await work();
  return typeof measured === 'number' ? measured : performance.now() - beganMs;
}

async function ok(
  { call, headers }: Pick<Side, 'call' | 'headers'>,
  method: 'GET' | 'POST',
  path: string,
  body?: object,
  expected = 200,
): Promise<Record<string, unknown>> {
  const answer = await call(method, path, body === undefined ? { headers } : { headers, body });
  if (answer.status === expected) return answer.body;
  throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
}

function percentile(times: readonly number[]): number {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length * PERCENTILE)] ?? Number.NaN;
}
