import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { openThroughSocks, ProxyFailed } from './socks.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** Starts a proxy that sends each answer after one more message. Returns its place, and the messages. */
async function startProxy(...answers: Buffer[]) {
  const received: Buffer[] = [];
  const server = createServer((socket: Socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (data: Buffer) => {
      received.push(data);
      const answer = answers.shift();
      if (answer === undefined) socket.end();
      else socket.write(answer);
    });
  });
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { place: { host: '127.0.0.1', port: (server.address() as AddressInfo).port }, received };
}

const ACCEPTED = Buffer.of(5, 0);
const CONNECTED = Buffer.of(5, 0, 0, 1, 127, 0, 0, 1, 0, 22);
const signal = () => systemClock.deadline(5_000);

it('requests the host and the port, and leaves what the host sends', async () => {
  const { place, received } = await startProxy(
    ACCEPTED,
    Buffer.concat([CONNECTED, Buffer.from('SSH-2.0')]),
  );
  const socket = await openThroughSocks(place)({ host: '192.0.2.1', port: 31_000 }, signal());
  expect(received[1]).toEqual(Buffer.of(5, 1, 0, 1, 192, 0, 2, 1, 0x79, 0x18));
  const [banner] = await once(socket, 'data');
  expect(String(banner)).toBe('SSH-2.0');
  socket.destroy();
});

it('requests a name as a name', async () => {
  const { place, received } = await startProxy(ACCEPTED, CONNECTED);
  const socket = await openThroughSocks(place)({ host: 'host', port: 22 }, signal());
  expect(received[1]).toEqual(Buffer.of(5, 1, 0, 3, 4, 104, 111, 115, 116, 0, 22));
  socket.destroy();
});

it.each([
  ['requires authentication', [Buffer.of(5, 255)], ProxyFailed],
  ['closes the connection', [], ProxyFailed],
  ['does not reach the host', [ACCEPTED, Buffer.of(5, 5, 0, 1)], /SOCKS status 5/],
])('rejects if the proxy %s', async (_, answers, expected) => {
  const { place } = await startProxy(...answers);
  await expect(openThroughSocks(place)({ host: '192.0.2.1', port: 22 }, signal())).rejects.toThrow(
    expected,
  );
});
