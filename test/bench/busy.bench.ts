/**
 * Many nodes with one running pod each, polled by real processes of the central API through a gateway that answers at
 * once: the longest time between two polls of a node, the processor time, and a rental among the busy nodes.
 */
import { join } from 'node:path';
import { systemClock } from '#shared/runtime/clock.ts';
import { COLLECT_INTERVAL_MS } from '../../validator/central/market/metric-history/collect.ts';
import type { Database, Db } from '../../validator/central/platform/database/tables.ts';
import { eventually } from '../fakes/eventually.ts';
import { createDatabaseIn, startPostgresServer } from '../fakes/external/postgres-server.ts';
import { type CentralProcess, startCentralProcess } from '../fakes/scenes/central-process.ts';
import { type AddedNode, DEFAULT_TEMPLATE } from '../fakes/scenes/market-fixture.ts';
import { createServedMarket, type ServedMarket } from '../fakes/scenes/served-market.ts';
import { cpuSeconds } from '../measure/process-usage.ts';
import { median, type Row, ratioAtMost } from '../measure/row.ts';
import { startBusyGateway } from './busy-gateway.ts';
import { seedMarket } from './market-seed.ts';

/** Free nodes for the rentals in an empty market, and for those among the busy nodes. The median of few varies by half. */
const RENTALS = 20;
const PER_INSERT = 200;
const RUNNING_WITHIN_MS = 60_000;
const SAMPLE_MS = 1_000;
/** Time for the first round after the start, in which the processes also compare the pods of all nodes. */
const FIRST_ROUND_MS = 600_000;
const WARM_UP_SECONDS = 60;
/** Minimum number of intervals, and minimum duration, of a measurement. */
const MEASURED = 2;
const MEASURED_SECONDS = 60;
/** Intervals within which every node must be polled. */
const LATEST = 2;
const MS_PER_SECOND = 1_000;

type Market = ServedMarket<AddedNode[]>;
type Load = { name: string; nodes: number; intervalSeconds: number; processes: number };

export async function busyNodes(): Promise<Row[]> {
  const small = { nodes: 10_000, intervalSeconds: 10, processes: 1 };
  const onSqlite = await measureLoad({ name: 'busy nodes, SQLite', ...small }, (folder) =>
    join(folder, 'central.db'),
  );
  const server = await startPostgresServer({ keepsCommits: true });
  process.once('exit', server.removeNow);
  try {
    const large = { nodes: 50_000, intervalSeconds: 60, processes: 4 };
    return [
      ...onSqlite,
      ...(await measureLoad({ name: 'busy nodes, PostgreSQL', ...small }, () =>
        createDatabaseIn(server.folder, 'busy_small'),
      )),
      ...(await measureLoad({ name: '50,000 busy nodes, four processes', ...large }, () =>
        createDatabaseIn(server.folder, 'busy_large'),
      )),
    ];
  } finally {
    await server.remove();
  }
}

async function measureLoad(
  load: Load,
  databaseIn: (folder: string) => string | Promise<string>,
): Promise<Row[]> {
  const gateway = await startBusyGateway(podIdOf);
  const market = await createServedMarket(databaseIn, async ({ verifiedNode }) => {
    const nodes: AddedNode[] = [];
    while (nodes.length < 2 * RENTALS) nodes.push(await verifiedNode({ gpus: 1 }));
    return nodes;
  });
  const environment = {
    ...market.environment,
    CENTRAL_GATEWAY_URL: gateway.url,
    CENTRAL_SYNC_INTERVAL_SECONDS: String(load.intervalSeconds),
  };
  const centrals: CentralProcess[] = [];
  const endAll = () => Promise.all(centrals.splice(0).map((central) => central.end()));
  try {
    const alone = await startCentralProcess(environment);
    centrals.push(alone);
    const inEmptyMarket = await rentals(alone, market, market.nodes.slice(0, RENTALS));
    await endAll();
    await addBusyNodes(market.db, load.nodes);
    for (let count = 0; count < load.processes; count += 1) {
      centrals.push(await startCentralProcess(environment));
    }
    return await measureBusy(load, centrals, market, inEmptyMarket);
  } finally {
    await endAll();
    await market.close();
    await gateway.close();
  }
}

async function measureBusy(
  { name, intervalSeconds, processes }: Load,
  centrals: readonly CentralProcess[],
  market: Market,
  inEmptyMarket: number,
): Promise<Row[]> {
  const [first] = centrals;
  if (first === undefined) throw new Error('no process was started');
  const startedMs = systemClock.now();
  const isPolled = async () => {
    await systemClock.sleep(SAMPLE_MS);
    return systemClock.now() - (await longestSincePoll(market.db)) > startedMs;
  };
  await eventually('every node is polled', isPolled, FIRST_ROUND_MS);
  await systemClock.sleep(WARM_UP_SECONDS * MS_PER_SECOND);
  const beganMs = performance.now();
  const cpuSoFar = () => centrals.reduce((sum, { child }) => sum + cpuSeconds(child.pid), 0);
  const cpuBefore = cpuSoFar();
  const seconds = Math.max(MEASURED * intervalSeconds, MEASURED_SECONDS);
  const untilMs = beganMs + seconds * MS_PER_SECOND;
  let longestMs = 0;
  while (performance.now() < untilMs) {
    longestMs = Math.max(longestMs, await longestSincePoll(market.db));
    await systemClock.sleep(SAMPLE_MS);
  }
  const elapsed = (performance.now() - beganMs) / MS_PER_SECOND;
  const cpu = cpuSoFar() - cpuBefore;
  const amongBusy = await rentals(first, market, market.nodes.slice(RENTALS));
  const polled = { ours: longestMs / MS_PER_SECOND, reference: intervalSeconds };
  const used = { ours: cpu, reference: elapsed };
  const rented = { ours: amongBusy, reference: inEmptyMarket };
  return [
    ratioAtMost(`${name}: longest time between polls`, 's', 'interval', polled, LATEST),
    ratioAtMost(`${name}: processor time`, 's', 'elapsed time', used, processes),
    ratioAtMost(`${name}: rental to RUNNING`, 'ms', 'in an empty market', rented, 2),
  ];
}

/** Median time in milliseconds from the request for a pod to the response that shows it RUNNING. */
async function rentals(
  central: CentralProcess,
  { account }: Market,
  nodes: readonly AddedNode[],
): Promise<number> {
  const took: number[] = [];
  for (const { id } of nodes) {
    const beganMs = performance.now();
    const body = { pod_name: 'bench', template_id: DEFAULT_TEMPLATE, gpu_count: 1 };
    const headers = account.key;
    const rented = await central.call('POST', `/executors/${id}/rent`, { headers, body });
    if (rented.status !== 200) throw new Error(JSON.stringify(rented.body));
    const path = `/pods/${rented.body['id']}`;
    const isRunning = async () =>
      (await central.call('GET', path, { headers })).body['status'] === 'RUNNING';
    await eventually('the pod is RUNNING', isRunning, RUNNING_WITHIN_MS);
    took.push(performance.now() - beganMs);
  }
  return median(took);
}

/**
 * Copies a running pod to many nodes, for another account. The copies are not metered. Collections of samples are due at
 * regular intervals, as in a market that has run for a while.
 */
async function addBusyNodes(db: Database, count: number): Promise<void> {
  const pod = await db.selectFrom('pods').selectAll().limit(1).executeTakeFirstOrThrow();
  const renter = await db.selectFrom('accounts').selectAll().executeTakeFirstOrThrow();
  const owner = { ...renter, id: 'owner', email: 'o@example.com', email_norm: 'o@example.com' };
  await db
    .insertInto('accounts')
    .values({ ...owner, referral_code: 'owner' })
    .execute();
  await seedMarket(db, count);
  const nowMs = systemClock.now();
  for (let from = 0; from < count; from += PER_INSERT) {
    const rows = Array.from({ length: Math.min(PER_INSERT, count - from) }, (_, index) => {
      const executor_id = nodeIdOf(from + index);
      return { executor_id, id: podIdOf(executor_id) ?? '', account_id: owner.id };
    });
    await db.transaction().execute(async (tx) => {
      const pods = rows.map((row) => ({ ...pod, ...row, seen_at: nowMs, healthy_at: nowMs }));
      await tx.insertInto('pods').values(pods).execute();
      await tx
        .insertInto('sync_turns')
        .values(rows.map(({ executor_id }) => ({ executor_id, ...DUE_NOW, due_at: nowMs })))
        .execute();
      const collections = rows.map(({ executor_id }, index) => {
        const due_at = nowMs + ((from + index) * COLLECT_INTERVAL_MS) / count;
        return { executor_id, failures: 0, due_at: Math.floor(due_at) };
      });
      await tx.insertInto('metric_collections').values(collections).execute();
    });
  }
}

const DUE_NOW = { failures: 0, woken: 0 } as const;
const NODE_PREFIX = '00000000-0000-4000-9000-';
const POD_PREFIX = '00000000-0000-4000-a000-';

/** Ids of the nodes of `seedMarket`. */
function nodeIdOf(index: number): string {
  return NODE_PREFIX + index.toString(16).padStart(12, '0');
}

function podIdOf(executorId: string): string | null {
  return executorId.startsWith(NODE_PREFIX)
    ? POD_PREFIX + executorId.slice(NODE_PREFIX.length)
    : null;
}

async function longestSincePoll(db: Db): Promise<number> {
  const { oldest } = await db
    .selectFrom('pods')
    .select((eb) => eb.fn.min('seen_at').as('oldest'))
    .where('ended_at', 'is', null)
    .executeTakeFirstOrThrow();
  return systemClock.now() - Number(oldest);
}
