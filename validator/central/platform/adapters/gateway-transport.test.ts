import { createServer as createHttpServer } from 'node:http';
import { createServer, type Server } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { identityFrom } from '#shared/signing/identity.ts';
import { makeCertificate } from '#shared/tls/certificate.ts';
import { explainedTransport, gatewayTransport } from './gateway-transport.ts';

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

function requestTo(gatewayUrl: string, signal?: AbortSignal) {
  const plain = gatewayTransport({ CENTRAL_GATEWAY_URL: gatewayUrl }, systemClock);
  const transport = explainedTransport(plain, { gatewayUrl, clock: systemClock });
  onTestFinished(() => transport.close());
  const init = { method: 'GET', headers: {}, ...(signal === undefined ? {} : { signal }) };
  return () => transport.fetch(new URL(gatewayUrl), init);
}

it('names the protocol that the port answers if the scheme of the gateway is wrong', async () => {
  const secure = requestTo(`http://127.0.0.1:${await listen(tlsServer())}`);
  await expect(secure()).rejects.toThrow(
    'the gateway: the port answers TLS; the central API sent plain HTTP',
  );
  const http = createHttpServer((_, response) => response.end());
  const plain = requestTo(`https://127.0.0.1:${await listen(http)}`);
  await expect(plain()).rejects.toThrow(
    'the gateway: the port answers plain HTTP; the central API sent TLS',
  );
});

it('names the variable of the pin if the certificate is self-signed', async () => {
  const send = requestTo(`https://127.0.0.1:${await listen(tlsServer())}`);
  await expect(send()).rejects.toThrow(/TLS_UNTRUSTED: .*; set CENTRAL_GATEWAY_PIN /);
});

it('observes the port once for several failures, and not after a cancelled request', async () => {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.on('error', () => undefined).destroy();
  });
  const url = `http://127.0.0.1:${await listen(server)}`;
  const send = requestTo(url);
  await expect(send()).rejects.toThrow(/^the gateway: /);
  const before = connections;
  await expect(send()).rejects.toThrow(/^the gateway: /);
  expect(connections - before).toBe(1);
  await expect(requestTo(url, AbortSignal.abort(new Error('gone')))()).rejects.toThrow('gone');
});
