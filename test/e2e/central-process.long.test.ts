/** The central API as a real process on its default database: races, kills at any moment, and a graceful shutdown. */
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readSse } from '#shared/http/event-stream.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import type { Database } from '../../validator/central/platform/database/tables.ts';
import type { FakeGateway } from '../fakes/agents/fake-gateway.ts';
import { eventually } from '../fakes/eventually.ts';
import type { TestAccount } from '../fakes/scenes/central-fixture.ts';
import {
  type CentralAnswer,
  type CentralProcess,
  startCentralProcess,
} from '../fakes/scenes/central-process.ts';
import { type AddedNode, DEFAULT_TEMPLATE } from '../fakes/scenes/market-fixture.ts';
import { createServedMarket, type ServedMarket } from '../fakes/scenes/served-market.ts';
import { openHolds } from '../fakes/scenes/wallet.ts';
import { createSeededRandom } from '../fakes/seeded-random.ts';

const AT_ONCE = 50;
const KILLS = 5;
const RENTS_PER_KILL = 8;
/** Upper bound of the random delay from the first claim to the kill. */
const KILLED_WITHIN_MS = 60;
/** Time limit of a response; the idempotency claim of a dead process expires after ten seconds. */
const ANSWERED_WITHIN_MS = 30_000;

let market: ServedMarket<{ single: AddedNode; large: AddedNode }>;
let gateway: FakeGateway;
let environment: Record<string, string>;
let db: Database;
let account: TestAccount;
let single: AddedNode;
let large: AddedNode;
let central: CentralProcess;

beforeAll(async () => {
  market = await createServedMarket(
    (folder) => join(folder, 'central.db'),
    async ({ verifiedNode }) => ({
      single: await verifiedNode({ gpus: 1 }),
      large: await verifiedNode({ gpus: KILLS * RENTS_PER_KILL, minimum: 1 }),
    }),
  );
  ({ gateway, environment, db, account } = market);
  ({ single, large } = market.nodes);
  central = await startCentralProcess(environment);
});

afterAll(async () => {
  await central?.end('SIGKILL');
  await market?.close();
});

function rent(node: AddedNode, key?: string): Promise<CentralAnswer> {
  return central.call('POST', `/executors/${node.id}/rent`, {
    headers: { ...account.key, ...(key === undefined ? {} : { 'idempotency-key': key }) },
    body: { pod_name: 'mine', template_id: DEFAULT_TEMPLATE, gpu_count: 1 },
  });
}

function livePods(node: AddedNode) {
  return db
    .selectFrom('pods')
    .select(['id', 'hold_id'])
    .where('executor_id', '=', node.id)
    .where('delete_requested_at', 'is', null)
    .where('ended_at', 'is', null)
    .execute();
}

async function slotsOf(node: AddedNode): Promise<string[]> {
  const rows = await db
    .selectFrom('gpu_slots')
    .select('pod_id')
    .where('executor_id', '=', node.id)
    .where('pod_id', 'is not', null)
    .execute();
  return rows.map(({ pod_id }) => String(pod_id)).toSorted();
}

async function removeAll(node: AddedNode): Promise<void> {
  for (const { id } of await livePods(node)) {
    await central.call('DELETE', `/pods/${id}`, { headers: account.key });
  }
  await eventually('every GPU free', async () => (await slotsOf(node)).length === 0);
}

const codeOf = ({ body }: CentralAnswer) => (body['error'] as { code: string }).code;

it('serves a complete description of its interface', async () => {
  const { status, body } = await central.call('GET', '/openapi.json');
  expect(status).toBe(200);
  expect(body['paths']).toHaveProperty(['/executors/{executor_uuid}/rent']);
});

it(`rents the last GPU to one of ${AT_ONCE} concurrent requests`, async () => {
  const answers = await Promise.all(Array.from({ length: AT_ONCE }, () => rent(single)));
  const served = answers.filter(({ status }) => status === 200);
  expect(served).toHaveLength(1);
  // The API returns the first error while the pod starts, and the second once the pod runs.
  const refusals = ['409 node_rent_in_progress', '400 node_unavailable'];
  for (const answer of answers.filter((other) => other !== served[0])) {
    expect(refusals).toContain(`${answer.status} ${codeOf(answer)}`);
  }
  expect(await livePods(single)).toHaveLength(1);
  expect(await slotsOf(single)).toEqual([served[0]?.body['id']]);
  await removeAll(single);
});

it(`rents once for ${AT_ONCE} requests with the same Idempotency-Key`, async () => {
  const answers = await Promise.all(Array.from({ length: AT_ONCE }, () => rent(single, 'same')));
  const served = answers.filter(({ status }) => status === 200);
  expect(new Set(served.map(({ body }) => body['id'])).size).toBe(1);
  expect(served.filter(({ headers }) => !headers.has('idempotent-replayed'))).toHaveLength(1);
  for (const answer of answers.filter(({ status }) => status !== 200)) {
    expect([answer.status, codeOf(answer)]).toEqual([409, 'idempotency_in_progress']);
    expect(answer.headers.get('retry-after')).toBe('1');
  }
  const [pod, ...others] = await livePods(single);
  expect([pod?.id, others]).toEqual([served[0]?.body['id'], []]);
  const me = await central.call('GET', '/users/me', { headers: account.key });
  const holds = await openHolds(db);
  expect([...holds.keys()]).toEqual([pod?.hold_id]);
  expect(me.body['held']).toBe((holds.get(String(pod?.hold_id)) ?? 0) / 1e6);
  await removeAll(single);
});

it(`loses and duplicates nothing over ${KILLS} kills at random moments`, async () => {
  const random = createSeededRandom(42);
  const keys = Array.from({ length: KILLS * RENTS_PER_KILL }, (_, index) => `kill-${index}`);
  for (let round = 0; round < KILLS; round += 1) {
    const chosen = keys.slice(round * RENTS_PER_KILL, (round + 1) * RENTS_PER_KILL);
    const requests = chosen.map((key) => rent(large, key).catch(() => null));
    await systemClock.sleep(random.int(KILLED_WITHIN_MS));
    await central.end('SIGKILL');
    await Promise.all(requests);
    // GPUs and pods are consistent in what the dead process left, before any repair.
    const left = (await livePods(large)).map(({ id }) => id).toSorted();
    expect(await slotsOf(large)).toEqual(left);
    central = await startCentralProcess(environment);
  }
  const ids: unknown[] = [];
  for (const key of keys) {
    const answer = await eventually(
      `an answer under ${key}`,
      async () => {
        const again = await rent(large, key);
        return again.status === 200 ? again : null;
      },
      ANSWERED_WITHIN_MS,
    );
    ids.push(answer.body['id']);
  }
  const pods = await livePods(large);
  expect(pods.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
  expect(await slotsOf(large)).toEqual(ids.toSorted());
  const host = gateway.agents.host(large.id);
  await eventually('every container', () => host.pods.size >= ids.length);
  expect([...host.pods.keys()].toSorted()).toEqual(ids.toSorted());
  const holds = await openHolds(db);
  expect([...holds.keys()].toSorted()).toEqual(pods.map((pod) => pod.hold_id).toSorted());
  const held = holds.values().reduce((sum, hold) => sum + hold, 0);
  const me = await central.call('GET', '/users/me', { headers: account.key });
  expect(me.body['held']).toBeCloseTo(held / 1e6, 6);
  await removeAll(large);
}, 240_000);

it('finishes requests in progress on shutdown, closes streams with an event, and accepts nothing new', async () => {
  const { body } = await rent(single);
  const id = String(body['id']);
  const headers = { ...account.key };
  await eventually('a running pod', async () => {
    const pod = await central.call('GET', `/pods/${id}`, { headers });
    return pod.body['status'] === 'RUNNING' && pod;
  });
  const stream = await fetch(`${central.origin}/api/pods/${id}/logs?follow=true`, { headers });
  expect(stream.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  await eventually('a follower', () => gateway.agents.host(single.id).log.followers() === 1);
  const frames = Array.fromAsync(readSse(stream.body ?? []));

  // A connection that stays open over the shutdown, and requests that take a while: each login computes a hash.
  const keepAliveAgent = new Agent({ keepAlive: true, maxSockets: 1 });
  expect(await statusOver(keepAliveAgent)).toEqual({ status: 200, code: null });
  const wrong = { email: account.email, password: 'not the password' };
  const logIns = Array.from({ length: 4 }, () => sendNoticed('POST', '/users/login', wrong));
  const asleep = sendNoticed('GET', '/sleep/30');
  await Promise.all([...logIns, asleep].map(({ noticed }) => noticed));
  const ended = central.end('SIGTERM');

  for (const { answer } of logIns) expect((await answer).status).toBe(401);
  const { status, body: slept } = await asleep.answer;
  expect([status, Number(slept['slept']) < 10]).toEqual([200, true]);
  expect((await frames).at(-1)).toEqual({ meta: 'end', reason: 'server_shutdown' });
  expect(await ended).toBe(0);
  await expect(statusOver(keepAliveAgent)).rejects.toThrow(
    /ECONNREFUSED|ECONNRESET|socket hang up/,
  );
  keepAliveAgent.destroy();

  // The renter's earlier pod still exists.
  central = await startCentralProcess(environment);
  const pod = await central.call('GET', `/pods/${id}`, { headers });
  expect(pod.body['status']).toBe('RUNNING');
});

it('is not ready but still serves while it drains, then ends', async () => {
  await central.end('SIGTERM');
  central = await startCentralProcess({ ...environment, CENTRAL_DRAIN_SECONDS: '4' });
  const readiness = async () => (await fetch(`${central.origin}/readyz`)).status;
  expect(await readiness()).toBe(200);
  const startedMs = systemClock.monotonicMs();
  const ended = central.end('SIGTERM');
  await eventually('a process that is not ready', async () => (await readiness()) === 503);
  const machines = await central.call('GET', '/machines');
  expect([machines.status, systemClock.monotonicMs() - startedMs < 4_000]).toEqual([200, true]);
  expect(await ended).toBe(0);
  expect(systemClock.monotonicMs() - startedMs).toBeGreaterThanOrEqual(4_000);
  await expect(readiness()).rejects.toThrow();
  central = await startCentralProcess(environment);
});

/** Sends a request and resolves once the server has received it, which it confirms with `100 Continue`. */
function sendNoticed(method: 'GET' | 'POST', path: string, body?: object) {
  const text = body === undefined ? '' : JSON.stringify(body);
  const length = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
  const headers = { expect: '100-continue', ...(body === undefined ? {} : length) };
  const sent = request(`${central.origin}/api${path}`, { method, headers });
  const noticed = once(sent, 'continue').then(() => sent.end(text));
  const responded = once(sent, 'response') as Promise<[IncomingMessage]>;
  const answer = responded.then(async ([response]) => {
    const parsed: Record<string, unknown> = JSON.parse(await readText(response));
    return { status: response.statusCode, body: parsed };
  });
  sent.flushHeaders();
  return { noticed, answer };
}

function statusOver(agent: Agent): Promise<{ status: number; code: string | null }> {
  return new Promise((resolve, reject) => {
    const sent = request(`${central.origin}/api/machines`, { agent }, async (response) => {
      let text = '';
      for await (const part of response) text += part;
      const { error } = JSON.parse(text) as { error?: { code: string } };
      resolve({ status: response.statusCode ?? 0, code: error?.code ?? null });
    });
    sent.once('error', reject);
    sent.end();
  });
}
