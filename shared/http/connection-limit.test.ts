import { createServer, request } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { limitConnections } from './connection-limit.ts';

const server = createServer((_, response) => response.end('ok'));
limitConnections(server, 2);
let port = 0;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  port = (server.address() as AddressInfo).port;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const get = (localAddress: string) =>
  new Promise<boolean>((resolve) => {
    const sent = request({ host: '127.0.0.1', port, localAddress, agent: false }, (answer) => {
      answer.resume();
      answer.once('end', () => resolve(true));
    });
    sent.once('error', () => resolve(false));
    sent.end();
  });

function open(localAddress: string) {
  const socket = connect({ host: '127.0.0.1', port, localAddress });
  return new Promise<typeof socket>((resolve) => socket.once('connect', () => resolve(socket)));
}

it('closes connections of a source above its limit, and serves other sources', async () => {
  const held = [await open('127.0.0.2'), await open('127.0.0.2')];
  expect(await get('127.0.0.2')).toBe(false);
  expect(await get('127.0.0.3')).toBe(true);
  held[0]?.destroy();
  await expect.poll(() => get('127.0.0.2')).toBe(true);
  held[1]?.destroy();
});
