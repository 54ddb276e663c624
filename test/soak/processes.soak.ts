/** Three central APIs on one PostgreSQL database behind a balancer: one is killed each minute, under load. */
import { systemClock } from '#shared/runtime/clock.ts';
import type { Database } from '../../validator/central/platform/database/tables.ts';
import { eventually } from '../fakes/eventually.ts';
import { type Balancer, startBalancer } from '../fakes/external/balancer.ts';
import { createDatabaseIn, startPostgresServer } from '../fakes/external/postgres-server.ts';
import { type CentralProcess, startCentralProcess } from '../fakes/scenes/central-process.ts';
import { type AddedNode, DEFAULT_TEMPLATE } from '../fakes/scenes/market-fixture.ts';
import { createServedMarket, type ServedMarket } from '../fakes/scenes/served-market.ts';
import { openHolds } from '../fakes/scenes/wallet.ts';
import { figureAtMost, finding, type Row } from '../measure/row.ts';
import { type Answer, type Call, callerAt } from './chaos-client.ts';
import { type EventFollower, followEvents } from './chaos-events.ts';
import { ledgerCommand } from './chaos-ledger.ts';

const PROCESSES = 3;
/** Renters that rent and remove pods, each on a separate node. */
const RENTERS = 6;
const KILL_EVERY_MS = 60_000;
/** Time for which a killed process is missing. */
const DOWN_MS = 5_000;
const RUNNING_WITHIN_MS = 120_000;
const SETTLED_WITHIN_MS = 120_000;
const POLL_MS = 250;
const LOGGED_ERROR = '"level":50';
const MAX_ERRORS = 5;
const MAX_ERROR_CHARS = 2_000;

type Options = { minutes: number; print(line: string): void };
type Market = ServedMarket<AddedNode[]>;

/** Observations of the renters. */
type Observed = {
  /** Answers by status and error code; `0` if the connection failed. */
  answers: Map<string, number>;
  /** Pods by the Idempotency-Key of their rental. */
  rentals: Map<string, string>;
  /** Repeated rentals whose answer named another pod, or none. */
  different: string[];
};

export async function killedProcesses({ minutes, print }: Options): Promise<Row[]> {
  const server = await startPostgresServer({ keepsCommits: true });
  let market: Market | null = null;
  let balancer: Balancer | null = null;
  const processes: CentralProcess[] = [];
  try {
    market = await createServedMarket(() => createDatabaseIn(server.folder, 'processes'), addNodes);
    for (let index = 0; index < PROCESSES; index += 1) {
      processes.push(await startCentralProcess(market.environment));
    }
    balancer = await startBalancer(processes.map(portOf));
    const follower = followEvents(balancer.origin, market.account);
    const observed: Observed = { answers: new Map(), rentals: new Map(), different: [] };
    const kills = await underLoad({ market, balancer, processes, observed, minutes, print });
    const rows = await judge({ market, follower, observed, kills });
    await follower.stop();
    print(`answers: ${[...observed.answers].map(([key, count]) => `${key}: ${count}`).join(', ')}`);
    return rows;
  } finally {
    await Promise.all(processes.map((each) => kill(each, print)));
    await balancer?.close();
    await market?.close();
    await server.remove();
  }
}

async function addNodes({
  verifiedNode,
}: {
  verifiedNode(options: { gpus: number; minimum: number }): Promise<AddedNode>;
}): Promise<AddedNode[]> {
  const nodes: AddedNode[] = [];
  for (let index = 0; index < RENTERS; index += 1) {
    nodes.push(await verifiedNode({ gpus: 8, minimum: 1 }));
  }
  return nodes;
}

const portOf = ({ origin }: CentralProcess) => Number(new URL(origin).port);

type Load = Options & {
  market: Market;
  balancer: Balancer;
  processes: CentralProcess[];
  observed: Observed;
};

/** Kills the processes in turn while the renters work. Returns the number of kills. */
async function underLoad(load: Load): Promise<number> {
  const { market, balancer, processes, observed, minutes, print } = load;
  const ending = new AbortController();
  const call = callerAt(balancer.origin, market.account.key, (answer) => count(observed, answer));
  const renters = market.nodes.map((node) => rentAlways({ call, node, observed }, ending.signal));
  const failed = Promise.all(renters);
  failed.catch(() => ending.abort());
  const sleepUntil = (atMs: number) =>
    systemClock
      .sleep(Math.max(0, atMs - systemClock.monotonicMs()), ending.signal)
      .catch(() => undefined);
  const startMs = systemClock.monotonicMs();
  const endMs = startMs + minutes * KILL_EVERY_MS;
  let kills = 0;
  for (let atMs = startMs + KILL_EVERY_MS / 2; atMs < endMs; atMs += KILL_EVERY_MS) {
    await sleepUntil(atMs);
    if (ending.signal.aborted) break;
    const index = kills % processes.length;
    await kill(processes[index], print);
    kills += 1;
    print(`kill ${kills}: ${observed.rentals.size} rentals so far`);
    await systemClock.sleep(DOWN_MS);
    const next = await startCentralProcess(market.environment);
    processes[index] = next;
    balancer.ports[index] = portOf(next);
  }
  await sleepUntil(endMs);
  ending.abort();
  await failed;
  return kills;
}

/** Kills the process, and prints the errors that it logged. */
async function kill(central: CentralProcess | undefined, print: Options['print']): Promise<void> {
  await central?.end('SIGKILL');
  const errors = (central?.output() ?? '')
    .split('\n')
    .filter((line) => line.includes(LOGGED_ERROR));
  for (const line of errors.slice(0, MAX_ERRORS)) print(line.slice(0, MAX_ERROR_CHARS));
}

function count({ answers }: Observed, { status, code }: Answer): void {
  const key = status === 0 ? '0' : `${status} ${code}`.trim();
  answers.set(key, (answers.get(key) ?? 0) + 1);
}

type Renting = { call: Call; node: AddedNode; observed: Observed };

/** Rents a pod, waits until it runs, repeats the request, and removes the pod; until the signal. */
async function rentAlways(renting: Renting, signal: AbortSignal): Promise<void> {
  const { call, node, observed } = renting;
  for (let turn = 0; !signal.aborted; turn += 1) {
    const key = `${node.id}-${turn}`;
    const rent = () =>
      call(
        'POST',
        `/executors/${node.id}/rent`,
        { pod_name: 'soak', template_id: DEFAULT_TEMPLATE, gpu_count: 1 },
        key,
      );
    const { status, body } = await rent();
    if (status !== 200) throw new Error(`rental: ${status} ${JSON.stringify(body)}`);
    const id = String(body['id']);
    observed.rentals.set(key, id);
    await until(call, id, (present) => present === 'RUNNING');
    const again = await rent();
    if (again.status !== 200 || again.body['id'] !== id) observed.different.push(key);
    const removed = await call('DELETE', `/pods/${id}`);
    if (removed.status !== 200) throw new Error(`removal: ${removed.status}`);
  }
}

async function until(call: Call, id: string, isReached: (status: unknown) => boolean) {
  const giveUpMs = systemClock.monotonicMs() + RUNNING_WITHIN_MS;
  for (;;) {
    const { body } = await call('GET', `/pods/${id}`);
    if (isReached(body['status'])) return;
    if (systemClock.monotonicMs() > giveUpMs) {
      throw new Error(`pod ${id} is ${body['status']} after ${RUNNING_WITHIN_MS} ms`);
    }
    await systemClock.sleep(POLL_MS);
  }
}

type Judged = { market: Market; follower: EventFollower; observed: Observed; kills: number };

async function judge({ market, follower, observed, kills }: Judged): Promise<Row[]> {
  const { db, account, gateway, nodes } = market;
  const settled = async () =>
    (await heldGpus(db)) === 0 &&
    (await openHolds(db)).size === 0 &&
    nodes.every(({ id }) => gateway.agents.host(id).pods.size === 0);
  const isSettled = await eventually('settled', settled, SETTLED_WITHIN_MS).catch(() => false);
  const pods = await db.selectFrom('pods').select('id').execute();
  const known = new Set(observed.rentals.values());
  const missed = await missedEvents(db, account.id, follower);
  const audit = await ledgerCommand(market.environment.CENTRAL_DATABASE, ['verify']);
  const faults = [...observed.answers].filter(([key]) => /^5(?!03)/.test(key));
  const sum = (entries: [string, number][]) => entries.reduce((total, [, each]) => total + each, 0);
  const all = sum([...observed.answers]);
  return [
    finding('processes killed under load', kills, 'kills', 'the renters continue', kills > 0),
    finding('requests answered', all, 'answers', 'each in the end', true),
    figureAtMost('answers 500', sum(faults), 'answers', 0),
    finding(
      'rentals',
      known.size,
      'pods',
      'one for each key',
      known.size === observed.rentals.size,
    ),
    figureAtMost('repeated rentals with another pod', observed.different.length, 'rentals', 0),
    figureAtMost('pods without a rental', pods.length - known.size, 'pods', 0),
    figureAtMost('lost, repeated or moved events', missed, 'events', 0),
    finding('GPUs, holds and containers left', isSettled ? 0 : 1, 'faults', 'none', isSettled),
    finding('ledger', audit.isOk ? 0 : 1, 'faults', 'ledger verify holds', audit.isOk),
  ];
}

async function heldGpus(db: Database): Promise<number> {
  const rows = db.selectFrom('gpu_slots').select('idx').where('pod_id', 'is not', null);
  return (await rows.execute()).length;
}

/** Number of events after the first received one that the follower lost, received twice or in another order. */
async function missedEvents(
  db: Database,
  accountId: string,
  { received, gaps }: EventFollower,
): Promise<number> {
  const list = () =>
    db
      .selectFrom('events')
      .select('id')
      .where('account_id', '=', accountId)
      .where('feed_no', 'is not', null)
      .orderBy('feed_no')
      .execute();
  await eventually(
    'the last event',
    async () => (await list()).at(-1)?.id === received.at(-1),
    SETTLED_WITHIN_MS,
  ).catch(() => undefined);
  const stored = (await list()).map(({ id }) => id);
  const expected = stored.slice(stored.indexOf(received[0] ?? ''));
  const wrong = expected.filter((id, index) => received[index] !== id).length;
  return wrong + Math.max(0, received.length - expected.length) + gaps();
}
