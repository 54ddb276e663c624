import { afterAll, beforeAll, expect, it } from 'vitest';
import type { WebSocket } from 'ws';
import type { PodView } from '#shared/api/agent/pod.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { createSequenceCheck, openLog, startLogPod } from '../../test/bench/log-pod.ts';
import { type AgentProcess, createAgentHome } from '../../test/fakes/agents/agent-process.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { freePorts } from '../../test/fakes/free-ports.ts';
import { upgrade } from '../../test/fakes/raw-upgrade.ts';
import { createDockerodeEngine } from '../containers/engine/dockerode-engine.ts';
import { LABELS } from '../containers/engine/engine.ts';
import { MAX_FOLLOWERS } from './log.service.ts';

const LINES = 300_000;
const engine = createDockerodeEngine({ socketPath: '/var/run/docker.sock', clock: systemClock });
let home: ReturnType<typeof createAgentHome>;
let agent: AgentProcess;
let pod: PodView;

beforeAll(async () => {
  const { first } = await freePorts(10);
  home = createAgentHome({ AGENT_PORT_RANGE: `${first}-${first + 9}` });
  agent = await home.start();
  const write = `awk 'BEGIN { for (i = 1; i <= ${LINES}; i++) printf "%06d in the log\\n", i }'`;
  pod = await startLogPod(agent, `${write}; exec sleep 100000`);
  await eventually('a complete log', async () => {
    const last = await agent.send({ method: 'GET', path: `/v1/pods/${pod.id}/logs?tail=1` });
    return (await last.text()).includes(`"log":"${LINES} `);
  });
});
afterAll(async () => {
  await agent.stop();
  const owner = { [LABELS.executor]: home.executorId };
  for (const { id } of await engine.listContainers(owner)) await engine.removeContainer(id);
  for (const { id } of await engine.listNetworks(owner)) await engine.removeNetwork(id);
  home.remove();
});

const open = (query: string): Promise<WebSocket> =>
  agent.connect({ path: `/v1/pods/${pod.id}/logs?${query}`, maxMessageBytes: 1024 * 1024 });

/** Collects text messages and the close code. */
async function readAll(socket: WebSocket): Promise<{ messages: string[]; code: number }> {
  const messages: string[] = [];
  socket.on('message', (data, isBinary) => {
    if (isBinary) throw new Error('expected a text message');
    messages.push(String(data));
  });
  const closed = new Promise<number>((resolve) => socket.once('close', resolve));
  socket.resume();
  return { code: await closed, messages };
}

it('sends the frames of the event stream one by one, and resumes after any of them', async () => {
  const sse = await agent.send({ method: 'GET', path: `/v1/pods/${pod.id}/logs?tail=500` });
  const expected = (await sse.text())
    .split('\n\n')
    .slice(0, -1)
    .map((frame) => frame.slice('data: '.length));
  expect(expected).toHaveLength(500);
  expect(await readAll(await open('tail=500'))).toEqual({ code: 1000, messages: expected });
  const { id } = JSON.parse(expected[399] ?? '');
  expect((await readAll(await open(`since=${id}`))).messages).toEqual(expected.slice(400));
});

it('waits for a stalled client, and loses no line', async () => {
  const socket = await open('since=0&follow=true');
  const check = createSequenceCheck(/"log":"(\d{6}) /g);
  // Long enough for the agent to fill every buffer between the log and the client.
  await systemClock.sleep(2_000);
  socket.on('message', (data) => check.push(Buffer.from(`${data}\n`)));
  socket.resume();
  await eventually('all lines', () => check.count() === LINES, 100_000);
  socket.terminate();
});

it('counts its followers together with those of event streams', async () => {
  const leave = new AbortController();
  const path = `/v1/pods/${pod.id}/logs?follow=true&tail=1`;
  const stream = await openLog(agent, pod.id, 'follow=true&tail=1', leave.signal);
  await stream.next();
  const sockets = await Promise.all(
    Array.from({ length: MAX_FOLLOWERS - 1 }, () => open('follow=true&tail=1')),
  );
  const refused = open('follow=true');
  await expect(refused).rejects.toMatchObject({ code: 'rate_limited', status: 429 });
  expect((await agent.send({ method: 'GET', path })).status).toBe(429);
  for (const socket of sockets) socket.terminate();
  leave.abort();
  const next = await eventually('a free follower slot', () =>
    open('follow=true').catch(() => null),
  );
  next.terminate();
});

it('closes the socket of a client that sends a message, with a separate close code for a message that is too large', async () => {
  for (const [text, code] of [
    ['hello', 1008],
    ['x'.repeat(2_000), 1009],
  ] as const) {
    const socket = await open('follow=true&tail=0');
    socket.send(text);
    expect((await readAll(socket)).code).toBe(code);
  }
});

it('rejects a missing signature, a reused one, and an incomplete handshake', async () => {
  const path = `/v1/pods/${pod.id}/logs?tail=1`;
  const url = agent.origin + path;
  expect(await upgrade(url)).toMatchObject({ status: 401, code: 'auth_failed' });
  const headers = await agent.signedHeaders(path);
  expect((await upgrade(url, headers)).status).toBe(101);
  expect(await upgrade(url, headers)).toMatchObject({ status: 401, code: 'auth_failed' });
  const broken = { ...(await agent.signedHeaders(path)), 'sec-websocket-key': 'short' };
  expect(await upgrade(url, broken)).toMatchObject({ status: 400, code: 'bad_request' });
});

it('sends the end frame when the agent stops', async () => {
  const socket = await open('follow=true&tail=0');
  const reading = readAll(socket);
  await agent.stop();
  const { code, messages } = await reading;
  expect(messages.map((text) => JSON.parse(text))).toEqual([{ meta: 'end', reason: 'shutdown' }]);
  expect(code).toBe(1000);
});
