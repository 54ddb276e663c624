import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { FakeHost } from '../../../../test/fakes/agents/fake-agents.ts';
import { eventually } from '../../../../test/fakes/eventually.ts';
import { createTestDatabase } from '../../../../test/fakes/scenes/central-database.ts';
import { createPodScene, type PodScene } from '../../../../test/fakes/scenes/pod-scene.ts';
import { watchDatabase } from '../../../../test/fakes/scenes/watched-database.ts';

const EVENTS = 'GET /api/users/me/events/stream';
/** Maximum number of event streams of an account. */
const MAX_STREAMS = 20;
const UPGRADE = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
];

let watched: ReturnType<typeof watchDatabase>;
let scene: PodScene;
let host: FakeHost;
let port: number;
let podId: string;

beforeEach(async () => {
  watched = watchDatabase(await createTestDatabase());
  scene = await createPodScene({ db: watched.db });
  ({ host } = scene);
  podId = await scene.running();
  const base = await scene.market.server.listen({ host: '127.0.0.1', port: 0 });
  port = Number(new URL(base).port);
});
afterEach(() => scene.close());

function request(line: string, headers: string[] = [], socket = connect(port, '127.0.0.1')) {
  const key = `X-Api-Key: ${scene.account.apiKey}`;
  const lines = [`${line} HTTP/1.1`, 'Host: x', key, ...headers];
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  return socket;
}

/** Sends requests whose clients disconnect during a query of `table`. */
async function leaveDuring(table: string, count: number, line: string, headers: string[] = []) {
  const { server } = scene.market.server;
  let arrived = 0;
  let left = 0;
  const arrive = () => {
    arrived += 1;
  };
  const meet = (socket: Socket) => {
    socket.once('close', () => {
      left += 1;
    });
  };
  server.on('connection', meet).on('request', arrive).on('upgrade', arrive);
  watched.hold(table);
  const sockets = Array.from({ length: count }, () => request(line, headers));
  await eventually('all requests', () => arrived === count);
  for (const socket of sockets) socket.destroy();
  await eventually('all gone', () => left === count);
  watched.release();
  server.off('connection', meet).off('request', arrive).off('upgrade', arrive);
}

/** Returns the status line of the response and leaves the socket open. */
async function statusOf(socket: Socket): Promise<string> {
  const [head] = await once(socket, 'data');
  return String(head).split('\r\n', 1)[0] ?? '';
}

it.each([
  ['authentication', 'api_keys'],
  ['the search of the position', 'events'],
])('releases the streams of clients that disconnected during %s', async (_, table) => {
  await leaveDuring(table, MAX_STREAMS, EVENTS);
  const stayed = Array.from({ length: MAX_STREAMS }, () => request(EVENTS));
  for (const socket of stayed) expect(await statusOf(socket)).toBe('HTTP/1.1 200 OK');
  const tooMany = request(EVENTS);
  expect(await statusOf(tooMany)).toBe('HTTP/1.1 429 Too Many Requests');
  for (const socket of [...stayed, tooMany]) socket.destroy();
});

it.each([
  ['lines', '', []],
  ['events', '&format=events', []],
  ['a WebSocket', '', UPGRADE],
])(
  'requests no log from the node for a client that has disconnected (log as %s)',
  async (_, form, headers) => {
    const line = `GET /api/pods/${podId}/logs?follow=true${form}`;
    for (const table of ['api_keys', 'pods']) await leaveDuring(table, 3, line, headers);
    // Its database queries run after those of the earlier requests.
    expect((await scene.call('GET', `/pods/${podId}`)).status).toBe(200);
    expect(host.log.queries).toEqual([]);
    const stays = request(line, headers);
    await eventually('the stream', () => host.log.followers() === 1);
    stays.destroy();
    await eventually('its end', () => host.log.followers() === 0);
  },
);

it('opens no terminal for a client that has disconnected', async () => {
  let opened = 0;
  scene.market.agents.terminalOf = async () => {
    opened += 1;
    throw new Error('no terminal was expected');
  };
  const line = `GET /api/pods/${podId}/terminal?cols=80&rows=24`;
  for (const table of ['api_keys', 'pods']) await leaveDuring(table, 3, line, UPGRADE);
  expect((await scene.call('GET', `/pods/${podId}`)).status).toBe(200);
  expect(opened).toBe(0);
});

it.each(['events', 'logs'])('answers a HEAD request for %s with headers only', async (what) => {
  const path = what === 'events' ? 'users/me/events/stream' : `pods/${podId}/logs?follow=true`;
  // Requests are sent one after the other on one connection. Each one ends and releases its stream.
  const socket = request(`HEAD /api/${path}`);
  for (let n = 0; n <= MAX_STREAMS; n += 1) {
    const [head] = await once(socket, 'data');
    expect(String(head)).toMatch(/^HTTP\/1\.1 200 OK\r\n.*text\/event-stream.*\r\n\r\n$/s);
    request(`HEAD /api/${path}`, [], socket);
  }
  expect(host.log.followers()).toBe(0);
  socket.destroy();
});
