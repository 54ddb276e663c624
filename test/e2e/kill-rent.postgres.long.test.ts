/** kill -9 of the central API at six points of a rental: money, GPUs, claims and containers agree afterwards. */
import { createConnection } from 'node:net';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import type { Database } from '../../validator/central/platform/database/tables.ts';
import type { FakeGateway } from '../fakes/agents/fake-gateway.ts';
import { eventually } from '../fakes/eventually.ts';
import {
  type Moment,
  type PostgresProxy,
  startPostgresProxy,
} from '../fakes/faults/postgres-proxy.ts';
import { createPostgresDatabase } from '../fakes/scenes/central-database.ts';
import type { TestAccount } from '../fakes/scenes/central-fixture.ts';
import { type CentralProcess, startCentralProcess } from '../fakes/scenes/central-process.ts';
import { type AddedNode, DEFAULT_TEMPLATE } from '../fakes/scenes/market-fixture.ts';
import {
  BALANCE_UUSD,
  createServedMarket,
  type ServedMarket,
} from '../fakes/scenes/served-market.ts';
import { openHolds } from '../fakes/scenes/wallet.ts';

/** Time limit of a response; the idempotency claim of a dead process expires after ten seconds. */
const ANSWERED_WITHIN_MS = 30_000;

/**
 * A point of a rental: messages of one database connection, in this order; the process is killed at the last message.
 */
type Point = { name: string; messages: readonly string[]; at: Moment };
const POINTS: readonly Point[] = [
  { name: 'before the claim', messages: ['insert into "idempotency"'], at: 'sent' },
  { name: 'after the claim', messages: ['insert into "idempotency"', 'commit'], at: 'done' },
  { name: 'after the reservation', messages: ['update "gpu_slots"'], at: 'done' },
  { name: 'after the hold', messages: ['insert into "pods"'], at: 'done' },
  { name: 'after the commit', messages: ['insert into "pods"', 'commit'], at: 'done' },
];

let market: ServedMarket<AddedNode[]>;
let gateway: FakeGateway;
let proxy: PostgresProxy;
let environment: Record<string, string>;
let db: Database;
let account: TestAccount;
let nodes: AddedNode[];
let central: CentralProcess;

beforeAll(async () => {
  proxy = await startPostgresProxy(inject('centralDatabase'));
  market = await createServedMarket(createPostgresDatabase, async ({ verifiedNode }) => {
    const added: AddedNode[] = [];
    for (let index = 0; index <= POINTS.length; index += 1) {
      added.push(await verifiedNode({ gpus: 1 }));
    }
    return added;
  });
  ({ gateway, db, account, nodes } = market);
  const { CENTRAL_DATABASE: url } = market.environment;
  environment = { ...market.environment, CENTRAL_DATABASE: proxy.urlOf(url) };
  central = await startCentralProcess(environment);
});

afterAll(async () => {
  await central?.end('SIGKILL');
  await market?.close();
  await proxy?.close();
});

const bodyOf = () => ({ pod_name: 'mine', template_id: DEFAULT_TEMPLATE });

function rent(node: AddedNode, key: string) {
  const headers = { ...account.key, 'idempotency-key': key };
  return central.call('POST', `/executors/${node.id}/rent`, { headers, body: bodyOf() });
}

/** Resolves when the process is dead; the request never gets an answer. */
async function killAt({ messages, at }: Point, node: AddedNode, key: string): Promise<void> {
  const progress = new Map<object, number>();
  const dead = new Promise<void>((resolve) => {
    proxy.watch(async (sql, moment, connection) => {
      const reached = progress.get(connection) ?? 0;
      const expected = messages[reached];
      if (expected === undefined || !sql.includes(expected)) return;
      const isLast = reached === messages.length - 1;
      if (moment !== (isLast ? at : 'done')) return;
      progress.set(connection, reached + 1);
      if (!isLast) return;
      await central.end('SIGKILL');
      resolve();
    });
  });
  const [answer] = await Promise.all([rent(node, key).catch(() => null), dead]);
  expect(answer).toBe(null);
  proxy.watch(async () => undefined);
}

/** Sends a rental over a raw socket and kills the process when the first bytes of the answer arrive. */
async function killAtFirstBytes(node: AddedNode, key: string): Promise<void> {
  const { hostname, port } = new URL(central.origin);
  const body = JSON.stringify(bodyOf());
  const head = [
    `POST /api/executors/${node.id}/rent HTTP/1.1`,
    'Host: test',
    `X-API-Key: ${account.apiKey}`,
    'Content-Type: application/json',
    `Idempotency-Key: ${key}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  const socket = createConnection({ host: hostname, port: Number(port) });
  socket.on('error', () => undefined);
  await new Promise<void>((resolve) => {
    socket.once('readable', resolve);
    socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  });
  await central.end('SIGKILL');
  expect(String(socket.read(15))).toBe('HTTP/1.1 200 OK');
  socket.destroy();
}

/** Expects one pod, one hold, one leased GPU, one container, and no claim that is still in progress. */
async function expectOnePod(node: AddedNode, key: string, podId: string): Promise<void> {
  const pods = await db
    .selectFrom('pods')
    .select(['id', 'hold_id', 'account_id'])
    .where('executor_id', '=', node.id)
    .execute();
  expect(pods).toEqual([{ id: podId, hold_id: expect.any(String), account_id: account.id }]);
  const holds = await openHolds(db);
  expect(holds.get(String(pods[0]?.hold_id))).toBeGreaterThan(0);
  const slots = await db
    .selectFrom('gpu_slots')
    .select('pod_id')
    .where('executor_id', '=', node.id)
    .execute();
  expect(slots).toEqual([{ pod_id: podId }]);
  const claims = await db
    .selectFrom('idempotency')
    .select(['state', 'status'])
    .where('key', '=', key)
    .execute();
  expect(claims).toEqual([{ state: 'finished', status: 200 }]);
  await eventually('the container', () => gateway.agents.host(node.id).pods.size > 0);
  const host = gateway.agents.host(node.id);
  expect([...host.pods.keys()]).toEqual([podId]);
  expect(host.calls.filter((call) => call.startsWith('put'))).toEqual([`put ${podId}`]);
  const { body } = await central.call('GET', '/users/me', { headers: account.key });
  // A later rental settles the running pods, which ends their holds.
  const all = await db.selectFrom('pods').select('hold_id').execute();
  expect(all.map(({ hold_id }) => hold_id)).toEqual(expect.arrayContaining([...holds.keys()]));
  const held = holds.values().reduce((sum, hold) => sum + hold, 0);
  expect(body['held']).toBeCloseTo(held / 1e6, 6);
  const meters = await db.selectFrom('usage_meters').select('charged_uusd').execute();
  const charged = meters.reduce((sum, meter) => sum + meter.charged_uusd, 0);
  expect(body['balance']).toBeCloseTo((BALANCE_UUSD - charged) / 1e6, 6);
}

async function restartAndRetry(node: AddedNode, key: string): Promise<boolean> {
  central = await startCentralProcess(environment);
  const answer = await eventually(
    'an answer under the same key',
    async () => {
      const again = await rent(node, key);
      if (again.status === 200) return again;
      expect((again.body['error'] as { code: string }).code).toBe('idempotency_in_progress');
      return null;
    },
    ANSWERED_WITHIN_MS,
  );
  await expectOnePod(node, key, String(answer.body['id']));
  return answer.headers.get('idempotent-replayed') === 'true';
}

it.each(POINTS.map((point, index) => [point.name, point, index] as const))(
  'a rental is consistent after a kill %s',
  async (_, point, index) => {
    const node = nodes[index] ?? { id: '', port: 0 };
    await killAt(point, node, `point-${index}`);
    const hadCommitted = point.name === 'after the commit';
    const before = await db
      .selectFrom('pods')
      .select('id')
      .where('executor_id', '=', node.id)
      .execute();
    expect(before).toHaveLength(hadCommitted ? 1 : 0);
    expect(await restartAndRetry(node, `point-${index}`)).toBe(hadCommitted);
  },
);

it('a rental is consistent after a kill when half of the response was sent', async () => {
  const node = nodes.at(-1) ?? { id: '', port: 0 };
  await killAtFirstBytes(node, 'half');
  expect(await restartAndRetry(node, 'half')).toBe(true);
});
