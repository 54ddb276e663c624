import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterAll, afterEach, expect, it } from 'vitest';
import type { WebSocket } from 'ws';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { createSignedConnect } from '../api/agent/connect.ts';
import { dataFrame, readSse, sendSse } from '../http/event-stream.ts';
import { changeCertificate, createHttpServer } from '../http/server.ts';
import { type Clock, systemClock } from '../runtime/clock.ts';
import { ConfigError } from '../runtime/config.ts';
import { createLog } from '../runtime/log.ts';
import { systemRandom } from '../runtime/random.ts';
import { identityFrom, selfSignedPin } from '../signing/identity.ts';
import { createSignedFetch } from '../signing/signed-fetch.ts';
import { createSigner } from '../signing/sr25519.ts';
import {
  certificateFromFiles,
  LIFETIME_MS,
  RENEWED_BEFORE_MS,
  selfSignedCertificate,
} from './listener-certificate.ts';
import { findPeerRefusal } from './peer.ts';
import { createSecureTransport, type Transport, type Trust } from './transport.ts';

const folder = mkdtempSync(join(tmpdir(), 'podwright-tls-'));
afterAll(() => rmSync(folder, { recursive: true }));
const log = createLog({ name: 'test', level: 'silent' });
const honest = identityFrom(new Uint8Array(32).fill(1));
const stranger = identityFrom(new Uint8Array(32).fill(2));
const pin = selfSignedPin(honest.publicKey) ?? 'anybody';

const open: { close(): unknown }[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});

/** A certificate of `identity`, created at the clock's time. */
function certificateOf(identity = honest, clock: Clock = systemClock, name = 'localhost') {
  const file = join(folder, `${systemRandom.uuid()}.crt`);
  const { privateKey } = identity;
  return selfSignedCertificate({ file, privateKey, name, clock, random: systemRandom })();
}

async function serve(certificate = certificateOf(), limits: { requestTimeoutMs?: number } = {}) {
  const arrived: string[] = [];
  const server = createHttpServer({
    log,
    clock: systemClock,
    random: systemRandom,
    tls: certificate,
    bodyLimitBytes: 10_000_000,
    ...limits,
  });
  server.addHook('onRequest', async (request) => void arrived.push(request.url));
  server.post('/echo', async (request) => request.body);
  server.get('/gone', (_, reply) => reply.redirect('/echo'));
  server.get('/silent', (_, reply) => void reply.hijack());
  server.get('/stream', (_, reply) =>
    sendSse(
      reply,
      (async function* () {
        yield dataFrame({ n: 1 });
        await once(reply.raw, 'close');
      })(),
    ),
  );
  server.get('/socket', { config: { websocket: true } }, async (request, reply) => {
    const socket = await request.upgrade?.accept(reply, { maxMessageBytes: 100 });
    socket?.resume();
    socket?.on('message', (data) => socket.send(data));
    return reply;
  });
  await server.listen({ host: '127.0.0.1', port: 0 });
  open.push(server);
  const address = server.server.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  return { server, arrived, port };
}

function transportFor(trust: Trust, clock: Clock = systemClock): Transport {
  const transport = createSecureTransport({ trust, clock });
  open.push(transport);
  return transport;
}

function callerOf(port: number, trust: Trust, clock: Clock = systemClock, host = '127.0.0.1') {
  return {
    baseUrl: `https://${host}:${port}`,
    audience: 'anybody',
    signer: createSigner(new Uint8Array(32).fill(3)),
    clock: systemClock,
    random: systemRandom,
    transport: transportFor(trust, clock),
  };
}

const body = JSON.stringify({ secret: 'ü'.repeat(100_000) });
const post = { method: 'POST', path: '/echo', body };

async function refusalOf(work: Promise<unknown>): Promise<string | undefined> {
  return work.then(
    () => 'nothing was refused',
    (error) => findPeerRefusal(error)?.reason ?? String(error),
  );
}

it('closes a connection that does not begin a handshake', async () => {
  const { port } = await serve(certificateOf(), { requestTimeoutMs: 200 });
  const silent = createConnection({ host: '127.0.0.1', port });
  silent.resume();
  await once(silent, 'close');
});

it('sends requests, streams and WebSockets to the peer with the pinned key', async () => {
  const { port } = await serve();
  const caller = callerOf(port, pin);
  const send = createSignedFetch(caller);
  for (let round = 0; round < 3; round += 1) {
    expect(await (await send(post)).json()).toEqual(JSON.parse(body));
  }
  const stream = await send({ method: 'GET', path: '/stream' });
  for await (const frame of readSse(stream.body ?? [])) {
    expect(frame).toEqual({ n: 1 });
    break;
  }
  const socket: WebSocket = await createSignedConnect(caller)({
    path: '/socket',
    maxMessageBytes: 100,
  });
  socket.send('there and back');
  socket.resume();
  const [message] = await once(socket, 'message');
  expect(String(message)).toBe('there and back');
  socket.terminate();
});

it('sends nothing to a peer with another certificate', async () => {
  const { port, arrived } = await serve(certificateOf(stranger));
  const caller = callerOf(port, pin);
  expect(await refusalOf(createSignedFetch(caller)(post))).toBe('TLS_PIN_MISMATCH');
  const connecting = createSignedConnect(caller)({ path: '/socket', maxMessageBytes: 100 });
  expect(await refusalOf(connecting)).toBe('TLS_PIN_MISMATCH');
  expect(arrived).toEqual([]);
});

it('rejects a replaced certificate and accepts a renewed one of the same key', async () => {
  const { server, port, arrived } = await serve();
  const call = () => createSignedFetch(callerOf(port, pin))(post);
  changeCertificate(server, certificateOf(stranger));
  expect(await refusalOf(call())).toBe('TLS_PIN_MISMATCH');
  expect(arrived).toEqual([]);
  changeCertificate(server, certificateOf(honest));
  expect((await call()).status).toBe(200);
});

it('rejects an expired certificate even if its key is pinned', async () => {
  const { port, arrived } = await serve();
  const later = createManualClock(systemClock.now() + LIFETIME_MS + 1);
  const refused = await refusalOf(createSignedFetch(callerOf(port, pin, later))(post));
  expect(refused).toBe('TLS_CERTIFICATE_EXPIRED');
  expect(arrived).toEqual([]);
});

it('accepts a certificate of a trusted authority only for its name', async () => {
  const certificate = certificateOf();
  const { port, arrived } = await serve(certificate);
  const call = (host: string) =>
    createSignedFetch(callerOf(port, 'authorities', systemClock, host))(post);
  expect(await refusalOf(call('localhost'))).toBe('TLS_UNTRUSTED');
  const before = getCACertificates();
  setDefaultCACertificates([...before, certificate.cert]);
  try {
    expect(await refusalOf(call('127.0.0.1'))).toBe('TLS_UNTRUSTED');
    expect(arrived).toEqual([]);
    expect((await call('localhost')).status).toBe(200);
  } finally {
    setDefaultCACertificates(before);
  }
});

it.each([
  ['TLS 1.2', { maxVersion: 'TLSv1.2' }, /protocol version/],
  ['another protocol', { ALPNProtocols: ['h2'] }, /no application protocol/],
] as const)('rejects a client with %s', async (_, options, message) => {
  const { port, arrived } = await serve();
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options });
  socket.on('secureConnect', () => socket.destroy(new Error('it was let in')));
  const [error] = await once(socket, 'error');
  expect(String(error)).toMatch(message);
  expect(arrived).toEqual([]);
});

it('does not serve plain HTTP on the same port', async () => {
  const { port, arrived } = await serve();
  await expect(fetch(`http://127.0.0.1:${port}/silent`)).rejects.toThrow('fetch failed');
  expect(arrived).toEqual([]);
});

it('can abort a request before and after the response begins, and follows no redirect', async () => {
  const { port } = await serve();
  const send = createSignedFetch(callerOf(port, pin));
  const before = new AbortController();
  const waiting = send({ method: 'GET', path: '/silent', signal: before.signal });
  before.abort(new Error('enough'));
  await expect(waiting).rejects.toThrow('enough');
  await expect(send({ ...post, signal: AbortSignal.abort() })).rejects.toThrow('aborted');
  const after = new AbortController();
  const stream = await send({ method: 'GET', path: '/stream', signal: after.signal });
  const reading = stream.text();
  after.abort(new Error('enough'));
  await expect(reading).rejects.toThrow('enough');
  await expect(send({ method: 'GET', path: '/gone' })).rejects.toThrow('unexpected redirect');
});

it('retains its certificate across restarts, renews it before it expires, and retains the pin', async () => {
  const clock = createManualClock(systemClock.now());
  const file = join(folder, 'kept.crt');
  const { privateKey } = honest;
  const options = { file, privateKey, name: 'x', clock, random: systemRandom };
  const first = selfSignedCertificate(options)();
  expect(statSync(file).mode & 0o777).toBe(0o600);
  await clock.advance(LIFETIME_MS - RENEWED_BEFORE_MS - 60_000);
  expect(selfSignedCertificate(options)()).toEqual(first);
  await clock.advance(120_000);
  const renewed = selfSignedCertificate(options)();
  expect(renewed.cert).not.toBe(first.cert);
  expect([renewed.pin, renewed.notAfterMs > first.notAfterMs]).toEqual([pin, true]);
  writeFileSync(file, 'half a certificate');
  expect(selfSignedCertificate(options)().pin).toBe(pin);
  expect(selfSignedCertificate({ ...options, privateKey: stranger.privateKey })().pin).not.toBe(
    pin,
  );
});

it('reads configured files on each call, and rejects a key of another certificate', () => {
  const [certFile, keyFile] = [join(folder, 'given.crt'), join(folder, 'given.key')];
  const given = certificateOf();
  writeFileSync(certFile, given.cert);
  writeFileSync(keyFile, given.key);
  const read = certificateFromFiles(certFile, keyFile, 'AGENT');
  expect(read()).toEqual(given);
  writeFileSync(certFile, certificateOf(stranger).cert);
  expect(read).toThrow('does not belong to AGENT_TLS_KEY');
  writeFileSync(certFile, 'hush');
  expect(read).toThrow(new ConfigError(`AGENT_TLS_CERT (${certFile}): not a certificate in PEM`));
  writeFileSync(certFile, given.cert);
  writeFileSync(keyFile, 'hush');
  expect(read).toThrow(new ConfigError(`AGENT_TLS_KEY (${keyFile}): not a private key in PEM`));
  rmSync(keyFile);
  expect(read).toThrow(`AGENT_TLS_KEY (${keyFile}): ENOENT`);
});

it.each([20, 64, 127, 128, 300])(
  'creates a valid certificate for a name of %i characters',
  (chars) => {
    const certificate = certificateOf(honest, systemClock, 'n'.repeat(chars));
    expect(certificate.pin).toBe(pin);
  },
);
