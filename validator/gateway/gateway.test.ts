import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { WebSocket } from 'ws';
import {
  createAgentClient,
  isClockRefusal,
  isWithoutResponse,
} from '#shared/api/agent/agent-client.ts';
import { createSignedConnect } from '#shared/api/agent/connect.ts';
import { IDENTITY_PATH } from '#shared/api/agent/identity.ts';
import { POD_LISTINGS_PATH } from '#shared/api/central/pod-listings.ts';
import { SAMPLE_HISTORIES_PATH } from '#shared/api/central/sample-histories.ts';
import { createHttpServer, type HttpServer } from '#shared/http/server.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createReplayCache, createRequestVerifier } from '#shared/signing/request-verifier.ts';
import { createSignedFetch } from '#shared/signing/signed-fetch.ts';
import { createSigner, type LocalSigner, verifySr25519 } from '#shared/signing/sr25519.ts';
import { enrolAgent } from '../../test/fakes/agents/enrolled-agent.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { startBalancer } from '../../test/fakes/external/balancer.ts';
import { upgrade } from '../../test/fakes/raw-upgrade.ts';
import { goldenPolicy, H100 } from '../../test/fixtures/cycle-set.ts';
import { inventoryOf } from '../../test/fixtures/inventory.ts';
import { createValidator, type Validator } from '../app.ts';
import { createGatewayAgents } from '../central/platform/adapters/gateway-agents.ts';
import { readCheckPolicy } from '../checks/check-policy.ts';
import { openEvidenceStore } from '../store/evidence-store.ts';
import type { EvidenceStore } from '../store/tables.ts';

const EXECUTOR_ID = '11111111-1111-4111-8111-111111111111';
const UNKNOWN_ID = '22222222-2222-4222-8222-222222222222';
const log = createLog({ name: 'test', level: 'silent' });
const ports = { clock: systemClock, random: systemRandom };

const central = signerOf(1);
const validatorKey = signerOf(2);
let agent: HttpServer;
let centralStub: HttpServer;
let validator: Validator;
let store: EvidenceStore;
let gatewayUrl = '';
let centralUrl = '';
/** Requests that the agent received with a valid signature of the validator. */
let arrived: string[] = [];
/** Milliseconds by which the agent's clock is ahead. */
let agentAheadMs = 0;
/** True if the agent accepts log requests without answering. */
let agentHangs = false;
/** Paused terminals at the agent; null if it refuses them. */
let shells: WebSocket[] | null = [];

function signerOf(fill: number): LocalSigner {
  return createSigner(new Uint8Array(32).fill(fill));
}

/** Port of the listener. */
async function listen(server: HttpServer): Promise<string> {
  return new URL(await server.listen({ host: '127.0.0.1', port: 0 })).port;
}

function createAgentSide(): HttpServer {
  const verifier = createRequestVerifier({
    clock: { ...systemClock, now: () => systemClock.now() + agentAheadMs },
    audience: EXECUTOR_ID,
    keys: [{ hotkey: validatorKey.hotkey, roles: ['validator-control'] }],
    replay: createReplayCache(60_000),
    verify: verifySr25519,
    onFailure: (reason) => arrived.push(`refused ${reason}`),
  });
  const server = createHttpServer({
    log,
    ...ports,
    bodyLimitBytes: 1_000_000,
    async verifyBody(request) {
      if (request.url === IDENTITY_PATH) return;
      const pending = verifier.checkHeaders(request, ['validator-control']);
      verifier.checkBody(pending, request.rawBody ?? new Uint8Array(0));
      arrived.push(`${request.method} ${request.url} ${JSON.stringify(request.body ?? null)}`);
    },
  });
  enrolAgent(server, EXECUTOR_ID, signerOf(3));
  server.get('/v1/inventory', async () => inventoryOf({ executorId: EXECUTOR_ID }));
  server.get('/v1/pods', async () => ({ pods: [] }));
  server.get('/v1/metrics/history', async () => ({ more: false }));
  server.put('/v1/pods/:id', async () => ({ wrong: 'shape' }));
  server.get('/v1/pods/:id/logs', async (_request, reply) => {
    if (agentHangs) reply.hijack();
    return reply;
  });
  server.get('/v1/pods/:id/exec', { config: { websocket: true } }, async (request, reply) => {
    if (request.upgrade === null || shells === null) {
      throw new ApiError('pod_state_conflict', 'The pod does not run');
    }
    const socket = await request.upgrade.accept(reply, { maxMessageBytes: 65_536 });
    shells.push(socket);
    return reply;
  });
  return server;
}

/** A process of the validator. Processes of one validator have the same key. */
function createGatewayOn(evidence: EvidenceStore): Validator {
  return createValidator({
    ...ports,
    log,
    signer: validatorKey,
    centralUrl,
    centralHotkey: central.hotkey,
    policy: { acceptSimulated: false, checks: readCheckPolicy() },
    proof: null,
    store: evidence,
    weightSettings: {
      policy: goldenPolicy(),
      metagraph: null,
      embedded: false,
      cycleMs: 60_000,
      epochMs: 60_000,
      retentionDays: 1,
      verdictDays: null,
    },
    checkIntervalMs: 60_000,
    agentTls: 'off',
    listIntervalMs: 60_000,
  });
}

beforeEach(async () => {
  arrived = [];
  agentHangs = false;
  agentAheadMs = 0;
  shells = [];
  agent = createAgentSide();
  const agentPort = await listen(agent);
  centralStub = createHttpServer({ log, ...ports, bodyLimitBytes: 1_000_000 });
  centralStub.post('/api/validator/:hotkey/executors', async () => [
    {
      id: EXECUTOR_ID,
      executor_ip_address: '127.0.0.1',
      executor_ip_port: agentPort,
      uptime_in_minutes: null,
      miner_hotkey: signerOf(3).hotkey,
      gpu_type: 'H100',
      gpu_count: 1,
      gpu_uuids: [],
      rented: true,
    },
  ]);
  const centralPort = await listen(centralStub);
  store = await openEvidenceStore(':memory:');
  centralUrl = `http://127.0.0.1:${centralPort}/api`;
  validator = createGatewayOn(store);
  gatewayUrl = `http://127.0.0.1:${await listen(validator.server)}`;
});

afterEach(async () => {
  await validator.close();
  await store.destroy();
  await agent.close();
  await centralStub.close();
});

function sendTo(executorId: string, signer = central, audience: string = validatorKey.hotkey) {
  const baseUrl = `${gatewayUrl}/v1/executors/${executorId}`;
  return createSignedFetch({ baseUrl, audience, signer, ...ports });
}

it('relays a signed command to the agent, signed by the validator, body unchanged', async () => {
  const client = createAgentClient({ send: sendTo(EXECUTOR_ID), clock: systemClock });
  expect((await client.inventory()).executor_id).toBe(EXECUTOR_ID);
  const body = '{"generation":1, "any":"text ünïcode"}';
  await sendTo(EXECUTOR_ID)({ method: 'PUT', path: `/v1/pods/${EXECUTOR_ID}`, body });
  expect(arrived).toEqual([
    'GET /v1/inventory null',
    `PUT /v1/pods/${EXECUTOR_ID} ${JSON.stringify(JSON.parse(body))}`,
  ]);
});

it.each([
  ['another signer', signerOf(9), undefined, 401],
  ['another audience', central, EXECUTOR_ID, 401],
])('rejects %s and relays nothing', async (_, signer, audience, status) => {
  const response = await sendTo(EXECUTOR_ID, signer, audience)({ method: 'GET', path: '/v1/pods' });
  expect(response.status).toBe(status);
  expect(arrived).toEqual([]);
});

it('rejects an unsigned request and a route that is not relayed', async () => {
  const unsigned = await fetch(`${gatewayUrl}/v1/executors/${EXECUTOR_ID}/v1/inventory`);
  expect(unsigned.status).toBe(401);
  const verify = await sendTo(EXECUTOR_ID)({ method: 'POST', path: '/v1/verify', body: '{}' });
  expect(verify.status).toBe(404);
  expect(arrived).toEqual([]);
});

it('estimates rewards for the central API only', async () => {
  const question = { gpu_model: H100, gpu_count: 8, price_uusd: 2_000_000 };
  const by = (signer: LocalSigner) => {
    const gatewayHotkey = validatorKey.hotkey;
    return createGatewayAgents({ ...ports, gatewayUrl, gatewayHotkey, signer });
  };
  const shares = await by(central).rewardShares(question);
  expect(shares).toMatchObject({ idle: expect.closeTo(0.2, 4), obstacles: [] });
  expect(shares.rented).toBeCloseTo(0.7, 4);
  const refused = by(signerOf(9)).rewardShares(question);
  await expect(refused).rejects.toMatchObject({ code: 'upstream_unavailable' });
});

/** Posts to a route of the gateway itself. */
function post(path: string, body: object, signer = central): Promise<Response> {
  const audience = validatorKey.hotkey;
  const send = createSignedFetch({ baseUrl: gatewayUrl, audience, signer, ...ports });
  return send({ method: 'POST', path, body: JSON.stringify(body) });
}

it('lists the pods of many nodes in one request, and leaves out nodes without an answer', async () => {
  const executor_ids = [EXECUTOR_ID, UNKNOWN_ID];
  const send = (signer: LocalSigner) => post(POD_LISTINGS_PATH, { executor_ids }, signer);
  const response = await send(central);
  expect(await response.json()).toEqual({
    listings: [{ executor_id: EXECUTOR_ID, answer: { pods: [] } }],
  });
  expect(arrived).toEqual(['GET /v1/pods null']);
  expect((await send(signerOf(9))).status).toBe(401);
  await agent.close();
  expect(await (await send(central)).json()).toEqual({ listings: [] });
});

it('reads the samples of many nodes in one request, each with its own position', async () => {
  const queries = [{ executor_id: EXECUTOR_ID, epoch: UNKNOWN_ID, after: 7 }];
  const send = () => post(SAMPLE_HISTORIES_PATH, { queries });
  expect(await (await send()).json()).toEqual({
    histories: [{ executor_id: EXECUTOR_ID, answer: { more: false } }],
  });
  expect(arrived).toEqual([`GET /v1/metrics/history?epoch=${UNKNOWN_ID}&after=7 null`]);
  const other = { queries: [{ executor_id: EXECUTOR_ID, after: 'x' }] };
  expect((await post(SAMPLE_HISTORIES_PATH, other)).status).toBe(422);
  expect((await post(SAMPLE_HISTORIES_PATH, { queries }, signerOf(9))).status).toBe(401);
  await agent.close();
  expect(await (await send()).json()).toEqual({ histories: [] });
});

it('serves the market through two gateways behind a balancer, also when one of them ends', async () => {
  const otherStore = await openEvidenceStore(':memory:');
  const other = createGatewayOn(otherStore);
  const balancer = await startBalancer([
    Number(new URL(gatewayUrl).port),
    Number(await listen(other.server)),
  ]);
  const agents = createGatewayAgents({
    ...ports,
    gatewayUrl: balancer.origin,
    gatewayHotkey: validatorKey.hotkey,
    signer: central,
  });
  const client = agents.clientOf(EXECUTOR_ID);
  const listings = () => Promise.all(Array.from({ length: 10 }, () => client.inventory()));
  expect(await listings()).toHaveLength(10);
  await validator.close();
  // Requests on connections to the ended gateway fail, as the sync repeats them; new connections reach the other one.
  await eventually('no broken connection', () => listings().catch(() => null));
  expect(await client.inventory()).toMatchObject({ executor_id: EXECUTOR_ID });
  await balancer.close();
  await other.close();
  await otherStore.destroy();
});

it('distinguishes an unknown node from one that does not answer', async () => {
  const unknown = createAgentClient({ send: sendTo(UNKNOWN_ID), clock: systemClock });
  await expect(unknown.inventory()).rejects.toMatchObject({ code: 'node_not_found' });
  await agent.close();
  const client = createAgentClient({ send: sendTo(EXECUTOR_ID), clock: systemClock });
  await expect(client.inventory()).rejects.toMatchObject({ code: 'upstream_unavailable' });
});

it('times out on a log that never begins', async () => {
  agentHangs = true;
  const path = `/v1/pods/${EXECUTOR_ID}/logs?follow=true`;
  const response = await sendTo(EXECUTOR_ID)({ method: 'GET', path });
  expect(response.status).toBe(502);
});

describe('a WebSocket', () => {
  const path = `/v1/pods/${UNKNOWN_ID}/exec?cols=80`;
  const connect = (signer = central, to = path, executorId = EXECUTOR_ID) =>
    createSignedConnect({
      baseUrl: `${gatewayUrl}/v1/executors/${executorId}`,
      audience: validatorKey.hotkey,
      signer,
      ...ports,
    })({ path: to, maxMessageBytes: 65_536 });

  async function pair(): Promise<{ near: WebSocket; far: WebSocket }> {
    const near = await connect();
    const far = shells?.at(-1);
    if (far === undefined) throw new Error('nothing arrived at the agent');
    return { near, far };
  }

  const messageOn = (socket: WebSocket) =>
    new Promise((resolve) => {
      socket.once('message', (data: Buffer, isBinary: boolean) => {
        resolve({ data: data.toString(), isBinary });
      });
      socket.resume();
    });
  const endOf = (socket: WebSocket) =>
    new Promise((resolve) => {
      socket.once('close', (code, reason) => resolve([code, String(reason)]));
      socket.resume();
    });

  it('is signed by the validator and passes text and binary in both directions', async () => {
    const { near, far } = await pair();
    expect(arrived).toEqual([`GET ${path} null`]);
    near.send('text');
    expect(await messageOn(far)).toEqual({ data: 'text', isBinary: false });
    far.send(Buffer.from('bytes'));
    expect(await messageOn(near)).toEqual({ data: 'bytes', isBinary: true });
    near.terminate();
    far.terminate();
  });

  it.each([
    ['from the agent', 'far', 1008],
    ['from the client', 'near', 4_001],
  ] as const)('passes on the close code %s', async (_, from, code) => {
    const sockets = await pair();
    const other = endOf(from === 'far' ? sockets.near : sockets.far);
    sockets[from].resume();
    sockets[from].close(code, 'so it is');
    expect(await other).toEqual([code, 'so it is']);
  });

  it('closes on one side when the connection on the other side breaks', async () => {
    const one = await pair();
    const left = endOf(one.far);
    one.near.terminate();
    expect(await left).toEqual([1011, '']);
    const two = await pair();
    const lost = endOf(two.near);
    two.far.terminate();
    expect(await lost).toEqual([1011, '']);
  });

  it('applies backpressure when the other side does not read', async () => {
    const { near, far } = await pair();
    const part = Buffer.alloc(60_000);
    // More than all socket buffers hold, and far more than the gateway may buffer.
    for (let sent = 0; sent < 100_000_000; sent += part.length) far.send(part);
    let unsent = -1;
    while (far.bufferedAmount !== unsent) {
      unsent = far.bufferedAmount;
      await systemClock.sleep(300);
    }
    expect(unsent).toBeGreaterThan(50_000_000);
    let received = 0;
    near.on('message', (data: Buffer) => {
      received += data.length;
    });
    near.resume();
    while (received < 100_000_000) await systemClock.sleep(20);
    near.terminate();
    far.terminate();
  });

  it('passes the agent’s refusal on before any data is sent', async () => {
    shells = null;
    await expect(connect()).rejects.toMatchObject({ code: 'pod_state_conflict', status: 400 });
    arrived = [];
    await expect(connect(signerOf(9))).rejects.toMatchObject({ code: 'auth_failed', status: 401 });
    const unsigned = await upgrade(`${gatewayUrl}/v1/executors/${EXECUTOR_ID}${path}`);
    expect(unsigned).toMatchObject({ status: 401 });
    const plain = connect(central, '/v1/inventory');
    await expect(plain).rejects.toMatchObject({ code: 'bad_request' });
    const nobody = connect(central, path, UNKNOWN_ID);
    await expect(nobody).rejects.toMatchObject({ code: 'node_not_found' });
    expect(arrived).toEqual([]);
    await agent.close();
    await expect(connect()).rejects.toMatchObject({ code: 'upstream_unavailable' });
  });

  it('closes with code 1001 (going away) when the gateway stops', async () => {
    const { near, far } = await pair();
    const ends = [endOf(near), endOf(far)];
    await validator.close();
    expect(await Promise.all(ends)).toEqual([
      [1001, 'server_shutdown'],
      [1001, 'server_shutdown'],
    ]);
  });
});

it('the gateway responds for an agent that does not respond; while the gateway is down there is no response', async () => {
  const client = createAgentClient({ send: sendTo(EXECUTOR_ID), clock: systemClock });
  const failure = () => client.listPods().catch((error: ApiError) => error);
  await agent.close();
  const ofAgent = await failure();
  await validator.close();
  const ofGateway = await failure();
  for (const error of [ofAgent, ofGateway]) {
    expect(error).toMatchObject({ code: 'upstream_unavailable' });
  }
  const results = [ofAgent, ofGateway].map(
    (error) => error instanceof ApiError && isWithoutResponse(error),
  );
  expect(results).toEqual([false, true]);
});

it('reports the clock difference of an agent that refuses a command because of its time', async () => {
  const client = createAgentClient({
    send: sendTo(EXECUTOR_ID),
    clock: systemClock,
    signsFor: 'validator',
  });
  agentAheadMs = 3_600_000;
  const error = await client.listPods().catch((failure: ApiError) => failure);
  expect(error).toMatchObject({
    code: 'upstream_unavailable',
    status: 502,
    message: 'The node’s clock differs by 1 h',
  });
  expect(error instanceof ApiError && [isClockRefusal(error), isWithoutResponse(error)]).toEqual([
    true,
    false,
  ]);
});

it('reports a malformed answer of the agent as upstream_unavailable', async () => {
  const client = createAgentClient({ send: sendTo(EXECUTOR_ID), clock: systemClock });
  const spec = {
    generation: 1,
    image: { reference: 'a/b:1' },
    limits: { cpu_cores: 1, memory_bytes: 1e8, shm_bytes: 0, pids: 100 },
  };
  await expect(client.putPod(EXECUTOR_ID, spec)).rejects.toMatchObject({
    code: 'upstream_unavailable',
  });
});
