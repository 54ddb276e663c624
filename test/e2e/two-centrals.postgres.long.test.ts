/**
 * Two real processes of the central API on one real PostgreSQL database: they share the work and survive each other.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import type { Database } from '../../validator/central/platform/database/tables.ts';
import type { FakeGateway } from '../fakes/agents/fake-gateway.ts';
import { eventually } from '../fakes/eventually.ts';
import { createPostgresDatabase } from '../fakes/scenes/central-database.ts';
import type { TestAccount } from '../fakes/scenes/central-fixture.ts';
import {
  type CentralAnswer,
  type CentralProcess,
  startCentralProcess,
} from '../fakes/scenes/central-process.ts';
import { framesOf } from '../fakes/scenes/event-follower.ts';
import { type AddedNode, DEFAULT_TEMPLATE } from '../fakes/scenes/market-fixture.ts';
import { createServedMarket, type ServedMarket } from '../fakes/scenes/served-market.ts';

const GPUS = 20;
/** Time limit of a takeover; a killed process counts as dead after ten seconds. */
const TAKEN_OVER_WITHIN_MS = 30_000;

let market: ServedMarket<{ single: AddedNode; large: AddedNode }>;
let gateway: FakeGateway;
let environment: Record<string, string>;
let db: Database;
let one: CentralProcess;
let other: CentralProcess;
let account: TestAccount;
let single: AddedNode;
let large: AddedNode;

beforeAll(async () => {
  market = await createServedMarket(createPostgresDatabase, async ({ verifiedNode }) => ({
    single: await verifiedNode({ gpus: 1 }),
    large: await verifiedNode({ gpus: GPUS, minimum: 1 }),
  }));
  ({ gateway, environment, db, account } = market);
  ({ single, large } = market.nodes);
  one = await startCentralProcess(environment);
  other = await startCentralProcess(environment);
});

afterAll(async () => {
  await Promise.all([one?.end(), other?.end()]);
  await market?.close();
});

function rent(at: CentralProcess, node: AddedNode, key?: string): Promise<CentralAnswer> {
  return at.call('POST', `/executors/${node.id}/rent`, {
    headers: { ...account.key, ...(key === undefined ? {} : { 'idempotency-key': key }) },
    body: { pod_name: 'mine', template_id: DEFAULT_TEMPLATE, gpu_count: 1 },
  });
}

async function untilRunning(at: CentralProcess, id: unknown): Promise<void> {
  await eventually(
    `pod ${id} running`,
    async () =>
      (await at.call('GET', `/pods/${id}`, { headers: account.key })).body['status'] === 'RUNNING',
    TAKEN_OVER_WITHIN_MS,
  );
}

async function remove(at: CentralProcess, ids: readonly unknown[]): Promise<void> {
  for (const id of ids) await at.call('DELETE', `/pods/${id}`, { headers: account.key });
  await eventually('every GPU free', async () => {
    const held = db.selectFrom('gpu_slots').select('idx').where('pod_id', 'is not', null);
    return (await held.execute()).length === 0;
  });
}

async function podsOf(node: AddedNode): Promise<string[]> {
  const rows = await db
    .selectFrom('pods')
    .select('id')
    .where('executor_id', '=', node.id)
    .where('ended_at', 'is', null)
    .execute();
  return rows.map((row) => row.id);
}

const launches = (node: AddedNode, id: unknown) =>
  gateway.agents.host(node.id).calls.filter((call) => call === `put ${id}`).length;

it('rents the last GPU to one of 50 concurrent requests to both processes', async () => {
  // The launch lasts until every request is answered: once the pod runs, later requests find no free GPU.
  const answered = Promise.withResolvers<void>();
  gateway.beforePutAnswer = () => answered.promise;
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, index) => rent(index % 2 === 0 ? one : other, single)),
  ).finally(answered.resolve);
  gateway.beforePutAnswer = async () => undefined;
  const served = answers.filter(({ status }) => status === 200);
  expect(served).toHaveLength(1);
  for (const { status, body } of answers.filter((answer) => answer !== served[0])) {
    expect([status, (body['error'] as { code: string }).code]).toEqual([
      409,
      'node_rent_in_progress',
    ]);
  }
  const id = served[0]?.body['id'];
  await untilRunning(other, id);
  expect(await podsOf(single)).toEqual([id]);
  expect(launches(single, id)).toBe(1);
  await remove(one, [id]);
});

it('rents once for 50 requests with the same Idempotency-Key to both processes', async () => {
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, index) => rent(index % 2 === 0 ? one : other, single, 'same')),
  );
  const served = answers.filter(({ status }) => status === 200);
  expect(new Set(served.map(({ body }) => body['id'])).size).toBe(1);
  for (const { status, body } of answers.filter((answer) => answer.status !== 200)) {
    const { code } = body['error'] as { code: string };
    expect([status, code]).toEqual([409, 'idempotency_in_progress']);
  }
  const again = await rent(other, single, 'same');
  expect(again.body).toEqual(served[0]?.body);
  expect(again.headers.get('idempotent-replayed')).toBe('true');
  expect(await podsOf(single)).toHaveLength(1);
  await remove(one, await podsOf(single));
});

it('launches every pod once, whichever process received the request', async () => {
  const rented = await Promise.all(
    Array.from({ length: 12 }, (_, index) => rent(index % 2 === 0 ? one : other, large)),
  );
  const ids = rented.map(({ body }) => body['id']);
  for (const id of ids) await untilRunning(one, id);
  expect(ids.map((id) => launches(large, id))).toEqual(ids.map(() => 1));
  await remove(other, ids);
});

it('streams events of the other process, and ends a stream so that the client can resume it', async () => {
  const path = '/api/users/me/events/stream';
  const { body: issued } = await one.call('POST', '/users/me/stream-ticket', {
    headers: account.key,
  });
  const response = await fetch(`${other.origin}${path}?ticket=${issued['ticket']}`);
  const frames = framesOf(response);
  const delaysMs: number[] = [];
  const seen: (string | null)[] = [];
  for (let n = 0; n < 3; n += 1) {
    const { body } = await rent(one, single);
    const askedMs = systemClock.monotonicMs();
    for (let isCreated = false; !isCreated; ) {
      const { value, done } = await frames.next();
      if (done === true) throw new Error('the stream ended');
      seen.push(value.id);
      const event = JSON.parse(value.data ?? '{}');
      isCreated = event.pod_id === body['id'];
    }
    delaysMs.push(systemClock.monotonicMs() - askedMs);
    await remove(one, [body['id']]);
  }
  // Without a notification from the other process, an event arrives after twenty seconds or more.
  expect(delaysMs.toSorted((a, b) => a - b)[1]).toBeLessThan(4_000);

  expect(await other.end('SIGTERM')).toBe(0);
  const rest = await Array.fromAsync(frames);
  expect(rest.at(-1)).toMatchObject({ event: 'end', data: expect.stringContaining('shutdown') });
  const ids = [...seen, ...rest.slice(0, -1).map(({ id }) => id)];
  const resumed = await fetch(`${one.origin}${path}`, {
    headers: { ...account.key, 'last-event-id': ids.at(0) ?? '' },
  });
  const again: (string | null)[] = [];
  for await (const { id } of framesOf(resumed)) if (again.push(id) >= ids.length - 1) break;
  expect(again).toEqual(ids.slice(1));
  other = await startCentralProcess(environment);
});

it('the other process finishes the work of a killed one', async () => {
  // The other process is frozen, so that this process launches the pod; the launch takes effect, but its response never
  // arrives.
  other.child.kill('SIGSTOP');
  let launched: (id: string) => void = () => undefined;
  const launching = new Promise<string>((resolve) => {
    launched = resolve;
  });
  const never = new AbortController();
  gateway.beforePutAnswer = async (podId) => {
    launched(podId);
    await systemClock.sleep(60_000, never.signal).catch(() => undefined);
  };
  const { body: first } = await rent(one, single, 'first');
  expect(await launching).toBe(first['id']);

  // Requests in progress at the kill: some have their pod, some have only claimed their key.
  const keys = Array.from({ length: GPUS }, (_, index) => `killed-${index}`);
  const requests = keys.map((key) => rent(one, large, key).catch(() => null));
  await Promise.race(requests);
  expect(await one.end('SIGKILL')).toBe(null);
  await Promise.all(requests);
  never.abort();
  gateway.beforePutAnswer = async () => undefined;
  other.child.kill('SIGCONT');

  await untilRunning(other, first['id']);
  expect(launches(single, first['id'])).toBe(1);
  for (const key of keys) {
    await eventually(
      `an answer under ${key}`,
      async () => (await rent(other, large, key)).status === 200,
      TAKEN_OVER_WITHIN_MS,
    );
  }
  const pods = await podsOf(large);
  expect(pods).toHaveLength(GPUS);
  for (const id of pods) await untilRunning(other, id);
  expect(pods.map((id) => launches(large, id))).toEqual(pods.map(() => 1));

  one = await startCentralProcess(environment);
  await remove(one, [first['id'], ...pods]);
});

it('the other process takes over at once on a graceful shutdown', async () => {
  const { body } = await rent(one, single);
  await untilRunning(one, body['id']);
  expect(await one.end('SIGTERM')).toBe(0);
  const living = await db.selectFrom('central_processes').select('boot_id').execute();
  expect(living).toHaveLength(1);
  await remove(other, [body['id']]);
  one = await startCentralProcess(environment);
});
