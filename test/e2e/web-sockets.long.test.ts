/** Log streams and terminals as WebSockets, through central API, gateway and agent, on the real Docker engine. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { systemClock } from '#shared/runtime/clock.ts';
import { createDockerodeEngine } from '../../agent/containers/engine/dockerode-engine.ts';
import { LABELS } from '../../agent/containers/engine/engine.ts';
import { MAX_FOLLOWERS } from '../../agent/logs/log.service.ts';
import { eventually } from '../fakes/eventually.ts';
import {
  type OtlpReceiver,
  type ReceivedSpan,
  startOtlpReceiver,
} from '../fakes/external/otlp-receiver.ts';
import { upgrade } from '../fakes/raw-upgrade.ts';
import { createTerminalClient } from '../fakes/scenes/terminal-client.ts';
import { api } from './api.ts';
import {
  freePortFlags,
  type MarketplaceProcess,
  removeHome,
  startMarketplaceProcess,
  temporaryHome,
} from './marketplace-process.ts';

const FOLLOWERS = 100;
const LINES = 5_000;

const engine = createDockerodeEngine({ socketPath: '/var/run/docker.sock', clock: systemClock });
const home = temporaryHome();
let market: MarketplaceProcess;
let collector: OtlpReceiver;
let podId = '';

beforeAll(async () => {
  collector = await startOtlpReceiver();
  market = await startMarketplaceProcess(home, await freePortFlags(), {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_BSP_SCHEDULE_DELAY: '500',
  });
  const [node] = (await api(market.demo(), 'GET', '/executors')).body as { id: string }[];
  const body = { pod_name: 'sockets', template_id: market.demo().templates[0]?.id };
  const rented = await api(market.demo(), 'POST', `/executors/${node?.id}/rent`, body);
  podId = (rented.body as { id: string }).id;
  await eventually('a running pod', async () => {
    const pod = (await api(market.demo(), 'GET', `/pods/${podId}`)).body as { status: string };
    return pod.status === 'RUNNING';
  });
});

afterAll(async () => {
  const executors = market.demo().executors.map(({ id }) => id);
  await market.end();
  for (const executor of executors) {
    const labels = { [LABELS.executor]: executor };
    for (const { id } of await engine.listContainers(labels)) await engine.removeContainer(id);
    for (const { id } of await engine.listNetworks(labels)) await engine.removeNetwork(id);
    for (const { name } of await engine.listVolumes(labels)) await engine.removeVolume(name);
  }
  removeHome(home);
  await collector.close();
});

it('exports a rental as one trace: central API, gateway, agent and engine', async () => {
  // Server spans only; each caller records a client span for the same request.
  const isOfServer = ({ name, kind }: ReceivedSpan) => name.startsWith('engine ') || kind === 2;
  const named = (name: string) =>
    collector.spans.filter((span) => span.name === name && isOfServer(span));
  const spans = await eventually('the spans', () => {
    const rent = named('POST /api/executors/:executor_uuid/rent')[0];
    const ofTrace = (name: string) => named(name).find(({ traceId }) => traceId === rent?.traceId);
    const relayed = ofTrace('PUT /v1/executors/:executorId/v1/pods/:id');
    const found = [rent, relayed, ofTrace('PUT /v1/pods/:id'), ofTrace('engine startContainer')];
    return found.every((span) => span !== undefined) && found;
  });
  const services = spans.map((span) => span?.service);
  expect(services).toEqual(['podwright', 'podwright', 'podwright-agent', 'podwright-agent']);
  expect(collector.refused).toEqual([]);
});

const urlOf = (path: string) => market.demo().base_url + path;
const key = () => ({ 'X-API-Key': market.demo().account.api_key });

function connect(path: string, headers: Record<string, string> = key()): Promise<WebSocket> {
  const socket = new WebSocket(urlOf(path), { headers });
  return new Promise((resolve, reject) => {
    socket.once('open', () => {
      // Buffers messages until a listener is attached.
      socket.pause();
      resolve(socket);
    });
    socket.once('error', reject);
  });
}

async function openTerminal(query = '', headers = key()) {
  return createTerminalClient(await connect(`/pods/${podId}/terminal?${query}`, headers));
}

async function ticket(): Promise<string> {
  const { status, body } = await api(market.demo(), 'POST', `/pods/${podId}/stream-ticket`);
  expect(status).toBe(200);
  expect(body).toMatchObject({ expires_in_seconds: 30, expires_at: expect.any(String) });
  return (body as { ticket: string }).ticket;
}

/** Returns the credential of another account. */
async function stranger(): Promise<Record<string, string>> {
  const email = `stranger${systemClock.now()}@example.com`;
  const body = { email, password: 'correct horse battery' };
  const answer = (await api(market.demo(), 'POST', '/users', body)).body as { api_key: string };
  return { 'X-API-Key': answer.api_key };
}

/** Collects the frames of a log stream as they arrive. */
function followerOf(socket: WebSocket) {
  const numbers: number[] = [];
  const notes: unknown[] = [];
  const closed = new Promise<number>((resolve) => socket.once('close', resolve));
  const ids: string[] = [];
  socket.on('message', (data: Buffer, isBinary: boolean) => {
    if (isBinary) throw new Error('a frame is text');
    const frame = JSON.parse(data.toString());
    const number = /^n (\d+)\n$/.exec(frame.log ?? '')?.[1];
    if (number !== undefined) numbers.push(Number(number));
    if ('meta' in frame) notes.push(frame);
    if ('id' in frame) ids.push(frame.id);
  });
  socket.resume();
  return { socket, numbers, ids, notes, closed };
}

describe('a terminal', () => {
  it('opens with an API key, applies its size, and reports its exit status', async () => {
    const terminal = await openTerminal('cols=77&rows=22');
    terminal.type('stty size\n');
    await terminal.shows('22 77');
    terminal.send({ type: 'resize', cols: 120, rows: 33 });
    await eventually('the new size', async () => {
      terminal.type('stty size\n');
      await systemClock.sleep(100);
      return terminal.hasShown('33 120');
    });
    terminal.type('exit 7\n');
    expect(await terminal.closed).toEqual({ code: 1000, reason: 'exit' });
    expect(terminal.exit()).toBe(7);
  });

  it('opens in a browser with a ticket that is valid once and for this pod only', async () => {
    const path = `/pods/${podId}/terminal?ticket=${await ticket()}`;
    const terminal = createTerminalClient(await connect(path, {}));
    terminal.type('echo $((6 * 7))\n');
    await terminal.shows('42');
    terminal.socket.close();
    expect(await upgrade(urlOf(path))).toMatchObject({ status: 401, code: 'unauthorized' });
    const foreign = `/pods/11111111-1111-4111-8111-111111111111/terminal?ticket=${await ticket()}`;
    expect(await upgrade(urlOf(foreign))).toMatchObject({ status: 401 });
    const plain = await fetch(urlOf(`/pods/${podId}/logs?ticket=${await ticket()}`));
    expect(plain.status).toBe(401);
    expect(await plain.json()).toMatchObject({ error: { code: 'unauthorized' } });
  });

  it('relays the node’s close code for a client’s protocol error', async () => {
    const terminal = await openTerminal();
    terminal.send({ type: 'reboot' });
    expect(await terminal.closed).toEqual({ code: 1008, reason: 'invalid_message' });
  });

  it('transfers large data unchanged in both directions', async () => {
    const terminal = await openTerminal();
    // A sum, because the terminal echoes the command before it runs: the expected text must not be part of the command.
    // Typed before the terminal is in raw mode, a line of more than 4,096 bytes would be truncated.
    terminal.type('stty raw -echo; echo $((6 * 7)); head -c $((1000 * 1000)) | wc -c; exit\n');
    await terminal.shows('42');
    for (let part = 0; part < 1_000; part += 1) terminal.type('y'.repeat(1_000));
    await terminal.shows('1000000');
    await terminal.closed;
  });

  it('ends when its key is revoked', async () => {
    const { base_url: base, account } = market.demo();
    const login = { email: account.email, password: account.password };
    const { token } = (await api(market.demo(), 'POST', '/users/login', login)).body as {
      token: string;
    };
    const session = { authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    const made = await fetch(`${base}/keys`, {
      method: 'POST',
      headers: session,
      body: JSON.stringify({ name: 'short-lived' }),
    });
    const { id, key: secret, api_key: other } = (await made.json()) as Record<string, string>;
    const terminal = await openTerminal('', { 'X-API-Key': secret ?? other ?? '' });
    terminal.type('echo $((6 * 7))\n');
    await terminal.shows('42');
    await fetch(`${base}/keys/${id}`, {
      method: 'DELETE',
      headers: { authorization: session.authorization },
    });
    expect(await terminal.closed).toEqual({ code: 1000, reason: 'credential_revoked' });
  });
});

describe('a connection is rejected', () => {
  it('without a credential, for another account, or without a pod', async () => {
    const terminal = `/pods/${podId}/terminal`;
    const logs = `/pods/${podId}/logs`;
    const missingPod = '/pods/11111111-1111-4111-8111-111111111111';
    for (const path of [terminal, logs, `${missingPod}/terminal`]) {
      const answer = await upgrade(urlOf(path));
      expect(answer).toMatchObject({ status: 401, code: 'unauthorized' });
      expect(answer.requestId).not.toBeNull();
    }
    const other = await stranger();
    expect(await upgrade(urlOf(terminal), other)).toMatchObject({ code: 'pod_not_found' });
    expect(await upgrade(urlOf(logs), other)).toMatchObject({ status: 403, code: 'forbidden' });
    expect(await upgrade(urlOf(`${missingPod}/logs`), key())).toMatchObject({ status: 404 });
    const refused = await api(
      market.demo(),
      'POST',
      `/pods/${podId}/stream-ticket`,
      undefined,
      other,
    );
    expect(refused).toMatchObject({ status: 404, body: { error: { code: 'pod_not_found' } } });
    expect(await upgrade(urlOf('/users/me'), key())).toMatchObject({ status: 400 });
    expect(await api(market.demo(), 'GET', terminal)).toMatchObject({ status: 426 });
  });
});

describe('a log', () => {
  it('reaches more followers than a node accepts, each line once, while one follower stops reading', async () => {
    expect(FOLLOWERS).toBeGreaterThan(MAX_FOLLOWERS);
    const path = `/pods/${podId}/logs?follow=true&tail=0`;
    const sockets = await Promise.all(Array.from({ length: FOLLOWERS }, () => connect(path)));
    const followers = sockets.map(followerOf);
    const [stalled, ...others] = followers;
    // All followers are attached once all of them have received this line.
    const terminal = await openTerminal();
    await eventually('the beginning', async () => {
      terminal.type('echo "n 0" >/proc/1/fd/1\n');
      await systemClock.sleep(200);
      return followers.every(({ numbers }) => numbers.length > 0);
    });
    for (const { numbers } of followers) numbers.length = 0;
    stalled?.socket.pause();
    terminal.type(`for i in $(seq 1 ${LINES}); do echo "n $i"; done >/proc/1/fd/1\n`);
    const all = Array.from({ length: LINES }, (_, index) => index + 1);
    const counted = ({ numbers }: { numbers: number[] }) => numbers.filter((number) => number > 0);
    await eventually('all lines', () => others.every((each) => each.numbers.at(-1) === LINES));
    for (const each of others) expect(counted(each)).toEqual(all);
    stalled?.socket.resume();
    await eventually('the rest', () => stalled?.numbers.at(-1) === LINES);
    expect(counted(stalled ?? { numbers: [] })).toEqual(all);
    for (const each of followers) expect(each.notes).toEqual([]);
    for (const { socket } of followers) socket.terminate();
    terminal.socket.terminate();
  });

  it('resumes after the last received frame, and accepts no messages from the client', async () => {
    const two = followerOf(await connect(`/pods/${podId}/logs?tail=2`));
    expect(await two.closed).toBe(1000);
    expect(two.notes).toEqual([{ meta: 'end', reason: 'complete' }]);
    // The pod writes a line a second: another line may arrive during the read.
    expect([2, 3]).toContain(two.ids.length);
    expect(new Set(two.ids).size).toBe(two.ids.length);
    const [first, second] = two.ids;
    const rest = followerOf(await connect(`/pods/${podId}/logs?since=${first}`));
    expect(await rest.closed).toBe(1000);
    expect(rest.ids[0]).toBe(second);
    const talker = followerOf(await connect(`/pods/${podId}/logs?follow=true`));
    talker.socket.send('hello');
    expect(await talker.closed).toBe(1008);
  });

  it('ends with its pod, as a terminal does', async () => {
    const follower = followerOf(await connect(`/pods/${podId}/logs?follow=true`));
    const terminal = await openTerminal();
    terminal.type('echo $((6 * 7))\n');
    await terminal.shows('42');
    await api(market.demo(), 'DELETE', `/pods/${podId}`);
    expect(await follower.closed).toBe(1000);
    expect(follower.notes.at(-1)).toEqual({ meta: 'end', reason: 'pod_deleted' });
    expect((await terminal.closed).code).toBe(1000);
    expect(await upgrade(urlOf(`/pods/${podId}/terminal`), key())).toMatchObject({
      status: expect.toSatisfy((status: number) => status === 400 || status === 404),
    });
  });
});
