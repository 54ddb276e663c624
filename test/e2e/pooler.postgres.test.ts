/** Two processes of the central API behind a real PgBouncer in transaction mode: a pod from rental to statement. */
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { eventually } from '../fakes/eventually.ts';
import { type PgBouncer, startPgBouncer } from '../fakes/external/pgbouncer.ts';
import { createPostgresDatabase } from '../fakes/scenes/central-database.ts';
import { type CentralProcess, startCentralProcess } from '../fakes/scenes/central-process.ts';
import { framesOf } from '../fakes/scenes/event-follower.ts';
import { type AddedNode, DEFAULT_TEMPLATE } from '../fakes/scenes/market-fixture.ts';
import { createServedMarket, type ServedMarket } from '../fakes/scenes/served-market.ts';

/** Fewer than the processes together may open, so that their transactions share connections. */
const CONNECTIONS = 4;
/** Without notifications, processes find events of each other by polling every two seconds. */
const EVENT_WITHIN_MS = 10_000;

let pooler: PgBouncer;
let market: ServedMarket<AddedNode>;
let one: CentralProcess;
let other: CentralProcess;

beforeAll(async () => {
  pooler = await startPgBouncer(inject('centralDatabase'), { connections: CONNECTIONS });
  market = await createServedMarket(createPostgresDatabase, ({ verifiedNode }) =>
    verifiedNode({ gpus: 8, minimum: 1 }),
  );
  const { CENTRAL_DATABASE: url } = market.environment;
  const environment = { ...market.environment, CENTRAL_DATABASE: pooler.urlOf(url) };
  [one, other] = await Promise.all([
    startCentralProcess(environment),
    startCentralProcess(environment),
  ]);
});

afterAll(async () => {
  await Promise.all([one?.end(), other?.end()]);
  await market?.close();
  await pooler?.close();
});

const call = (at: CentralProcess, method: string, path: string, body?: unknown) =>
  at.call(method, path, { headers: market.account.key, ...(body === undefined ? {} : { body }) });

const rent = (at: CentralProcess) =>
  call(at, 'POST', `/executors/${market.nodes.id}/rent`, {
    pod_name: 'pooled',
    template_id: DEFAULT_TEMPLATE,
    gpu_count: 1,
  });

async function untilStatus(at: CentralProcess, id: unknown, status: string): Promise<void> {
  await eventually(
    `pod ${id} ${status}`,
    async () => (await call(at, 'GET', `/pods/${id}`)).body['status'] === status,
  );
}

it('rents, runs, charges and removes pods, whichever process receives the request', async () => {
  const rented = await Promise.all([one, other, one, other, one, other].map(rent));
  expect(rented.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200]);
  const ids = rented.map(({ body }) => body['id']);
  for (const id of ids) await untilStatus(other, id, 'RUNNING');
  const { calls } = market.gateway.agents.host(market.nodes.id);
  expect(ids.map((id) => calls.filter((each) => each === `put ${id}`).length)).toEqual(
    ids.map(() => 1),
  );
  for (const id of ids) expect((await call(one, 'DELETE', `/pods/${id}`)).status).toBe(200);
  await eventually('every GPU free', async () => {
    const held = market.db.selectFrom('gpu_slots').select('idx').where('pod_id', 'is not', null);
    return (await held.execute()).length === 0;
  });
  for (const id of ids) {
    const { status, body } = await call(other, 'GET', `/pods/${id}/statement`);
    expect([status, body['pod_id']]).toEqual([200, id]);
    expect(body['total']).toBeGreaterThan(0);
  }
});

it('streams events of the other process by polling', async () => {
  const stream = await fetch(`${other.origin}/api/users/me/events/stream`, {
    headers: market.account.key,
    signal: systemClock.deadline(EVENT_WITHIN_MS * 2),
  });
  const frames = framesOf(stream);
  const { body } = await rent(one);
  const sentMs = systemClock.monotonicMs();
  for (let isFound = false; !isFound; ) {
    const { value, done } = await frames.next();
    if (done === true) throw new Error('the stream ended');
    isFound = JSON.parse(value.data ?? '{}').pod_id === body['id'];
  }
  expect(systemClock.monotonicMs() - sentMs).toBeLessThan(EVENT_WITHIN_MS);
  expect((await call(one, 'DELETE', `/pods/${body['id']}`)).status).toBe(200);
});
