import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { createManualClock, type ManualClock } from '../../test/fakes/manual-clock.ts';
import { createLog } from '../runtime/log.ts';
import { systemRandom } from '../runtime/random.ts';
import { KEEP_ALIVE_INTERVAL_MS } from './keep-alive.ts';
import { createHttpServer, type HttpServer } from './server.ts';

let clock: ManualClock;
let server: HttpServer;
let accepted: WebSocket;
let url = '';
const arrivals = new EventEmitter();

beforeEach(async () => {
  clock = createManualClock();
  const log = createLog({ name: 'test', level: 'silent' });
  server = createHttpServer({ log, clock, random: systemRandom, bodyLimitBytes: 1_000 });
  server.get('/socket', { config: { websocket: true } }, async (request, reply) => {
    const socket = await request.upgrade?.accept(reply, { maxMessageBytes: 100 });
    if (socket !== undefined) arrivals.emit('socket', socket);
    return reply;
  });
  url = await server.listen({ host: '127.0.0.1', port: 0 });
});
afterEach(() => {
  accepted.terminate();
  return server.close();
});

/** Opens a socket and returns the client; `autoPong`: whether the client answers pings. */
async function connect(autoPong: boolean): Promise<WebSocket> {
  const arrival = new Promise<WebSocket>((resolve) => arrivals.once('socket', resolve));
  const client = new WebSocket(`${url}/socket`, { autoPong });
  accepted = await arrival;
  accepted.resume();
  await new Promise((resolve) => client.once('open', resolve));
  return client;
}

/** Advances the clock by `count` intervals, with real time for a pong in each. */
async function wait(count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    await clock.advance(KEEP_ALIVE_INTERVAL_MS);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

it('pings every 15 s and does not close a socket that answers', async () => {
  const client = await connect(true);
  let pings = 0;
  client.on('ping', () => {
    pings += 1;
  });
  await wait(10);
  expect([pings, accepted.readyState]).toEqual([10, WebSocket.OPEN]);
  client.terminate();
});

it('terminates a socket that stops answering pings', async () => {
  const client = await connect(false);
  const closed = new Promise<number>((resolve) => client.once('close', resolve));
  await wait(3);
  expect(accepted.readyState).toBe(WebSocket.OPEN);
  await wait(1);
  expect(await closed).toBe(1006);
});

it('keeps a socket open while the server side is paused and reads no pongs', async () => {
  const client = await connect(true);
  accepted.pause();
  await wait(10);
  expect(accepted.readyState).toBe(WebSocket.OPEN);
  client.terminate();
});
