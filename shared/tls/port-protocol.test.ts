import { createServer as createHttpServer } from 'node:http';
import { createServer, type Server } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../runtime/clock.ts';
import { systemRandom } from '../runtime/random.ts';
import { identityFrom } from '../signing/identity.ts';
import { makeCertificate } from './certificate.ts';
import { explainUrl, observePort } from './port-protocol.ts';

async function listen(server: Server): Promise<number> {
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

function tlsServer(): Server {
  const { privateKey } = identityFrom(new Uint8Array(32).fill(3));
  const nowMs = systemClock.now();
  const times = { notBeforeMs: nowMs - 1_000, notAfterMs: nowMs + 60_000 };
  const cert = makeCertificate({ privateKey, name: 'x', serial: systemRandom.bytes(16), ...times });
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  return createTlsServer({ cert, key, minVersion: 'TLSv1.3' });
}

it.each<[string, () => Server, string]>([
  ['TLS', tlsServer, 'tls'],
  ['plain HTTP', () => createHttpServer((_, response) => response.end()), 'http'],
  [
    'SSH',
    () => createServer((socket) => socket.on('error', () => undefined).end('SSH-2.0-x\r\n')),
    'other',
  ],
  ['nothing', () => createServer((socket) => socket.on('error', () => undefined)), 'silent'],
])('observes a port that answers %s', async (_, create, found) => {
  const port = await listen(create());
  expect(await observePort(systemClock, { host: '127.0.0.1', port })).toBe(found);
});

it('names the cause of a failed request to a URL', async () => {
  const port = await listen(tlsServer());
  expect(await explainUrl(systemClock, `http://127.0.0.1:${port}/api`, 'the doctor')).toBe(
    'the port answers TLS; the doctor sent plain HTTP',
  );
  const closed = createServer();
  const free = await listen(closed);
  await new Promise((resolve) => closed.close(resolve));
  expect(await explainUrl(systemClock, `https://127.0.0.1:${free}/`, 'the doctor')).toContain(
    'no program listens',
  );
});
