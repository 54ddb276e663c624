import { request as httpRequest } from 'node:http';
import { ed25519PairFromSeed, ed25519Sign } from '@polkadot/util-crypto';
import { afterEach, expect, it } from 'vitest';
import { z } from 'zod';
import { AGENT_ROUTES } from '#shared/api/agent/routes.ts';
import type { HttpServer } from '#shared/http/server.ts';
import { hotkeyOf } from '#shared/signing/hotkey.ts';
import { ROLES, type Role } from '#shared/signing/request-verifier.ts';
import {
  type CanonicalParts,
  canonicalRequest,
  SIGNATURE_HEADERS,
  sha256Hex,
} from '#shared/signing/signed-request.ts';
import { createSigner, toHex } from '#shared/signing/sr25519.ts';
import { createGuardedServer, EXECUTOR_ID } from '../../test/fakes/agents/guarded-server.ts';
import { partsToSign, signatureHeaders } from '../../test/fakes/agents/sign-request.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { BURST, createFailureLimit, PUBLIC_PATHS, REFILL_MS, rolesFor } from './auth.ts';

const URL = '/v1/pods/3f9f41a6-0002-4000-8000-000000000002/reboot?a=1&b=2';
const BODY = '{"reboot":1}';
const JSON_TYPE = { 'content-type': 'application/json' };
const controller = createSigner(new Uint8Array(32).fill(1));
const reader = createSigner(new Uint8Array(32).fill(2));
const stranger = createSigner(new Uint8Array(32).fill(3));
const edPair = ed25519PairFromSeed(new Uint8Array(32).fill(4));
const edSigner = {
  hotkey: hotkeyOf(edPair.publicKey),
  sign: (message: Uint8Array) => ed25519Sign(message, edPair),
};

const servers: HttpServer[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

function createApp(clock = createManualClock()) {
  const calls: (string | null)[] = [];
  const { server, failures, replaceKeys } = createGuardedServer(clock, [
    { hotkey: controller.hotkey, roles: ['validator-control'] },
    { hotkey: reader.hotkey, roles: ['validator-read'] },
    { hotkey: edSigner.hotkey, roles: ['validator-control'] },
  ]);
  const handler = async (request: { caller: string | null }) => {
    calls.push(request.caller);
    return { ok: true };
  };
  server.post('/v1/pods/:id/reboot', { schema: { body: z.object({ reboot: z.int() }) } }, handler);
  server.get('/v1/pods/:id', handler);
  server.get('/forgotten', handler);
  server.get('/healthz', handler);
  servers.push(server);
  return { server, clock, calls, failures, replaceKeys };
}

type App = ReturnType<typeof createApp>;

function freshParts(app: App, changes: Partial<CanonicalParts> = {}, signer = controller) {
  const request = { method: 'POST', url: URL, body: BODY, audience: EXECUTOR_ID };
  return partsToSign(signer, { ...request, timestampMs: app.clock.now() }, changes);
}

async function post(app: App, headers: Record<string, string>, url = URL, payload = BODY) {
  const response = await app.server.inject({
    method: 'POST',
    url,
    payload,
    headers: { ...JSON_TYPE, ...headers },
  });
  return { status: response.statusCode, code: response.json().error?.code };
}

it('accepts a correctly signed request and records its caller', async () => {
  const app = createApp();
  expect((await post(app, signatureHeaders(controller, freshParts(app)))).status).toBe(200);
  expect(app.calls).toEqual([controller.hotkey]);
});

it('accepts only the new keys after a new key set, without a restart', async () => {
  const app = createApp();
  app.replaceKeys([{ hotkey: stranger.hotkey, roles: ['validator-control'] }]);
  const statusBy = async (signer: typeof controller) =>
    (await post(app, signatureHeaders(signer, freshParts(app, {}, signer)))).status;
  expect([await statusBy(stranger), await statusBy(controller)]).toEqual([200, 401]);
  expect(app.failures).toEqual(['signer']);
});

it('accepts a reordered query, but not a changed one', async () => {
  const app = createApp();
  const headers = signatureHeaders(controller, freshParts(app));
  expect((await post(app, headers, URL.replace('a=1&b=2', 'b=2&a=1'))).status).toBe(200);
  const again = signatureHeaders(controller, freshParts(app));
  expect((await post(app, again, URL.replace('b=2', 'b=3'))).code).toBe('auth_failed');
});

/** Differences between the signed parts and the received request. */
const SIGNED_OTHERWISE: [string, Partial<CanonicalParts>][] = [
  ['method', { method: 'PUT' }],
  ['path', { rawPath: '/v1/pods/3f9f41a6-0003-4000-8000-000000000003/reboot' }],
  ['query', { rawQuery: 'a=1&b=3' }],
  ['body hash', { bodySha256: sha256Hex('{}') }],
  ['timestamp', { timestampMs: 1 }],
  ['nonce', { nonce: 'A'.repeat(22) }],
  ['audience', { audience: 'someone-else' }],
  ['signer', { signer: stranger.hotkey }],
];

it.each(SIGNED_OTHERWISE)('rejects a signature over another %s', async (_, change) => {
  const app = createApp();
  const parts = freshParts(app);
  const answer = await post(app, signatureHeaders(controller, parts, { ...parts, ...change }));
  expect(answer).toEqual({ status: 401, code: 'auth_failed' });
  expect(app).toMatchObject({ calls: [], failures: ['signature'] });
});

it('rejects a signature over another version of the canonical form', async () => {
  const app = createApp();
  const parts = freshParts(app);
  const text = canonicalRequest(parts).replace('podwright-req-v1', 'podwright-req-v0');
  const signature = toHex(controller.sign(new TextEncoder().encode(text)));
  const headers = { ...signatureHeaders(controller, parts), 'x-podwright-signature': signature };
  expect((await post(app, headers)).code).toBe('auth_failed');
  expect(app.calls).toEqual([]);
});

type Headers = Record<string, string>;
/** Status, error code for the caller, and reason for the metric. */
type Refusal = readonly [number, string, string];
type Case = [string, Refusal, (app: App) => Headers | Promise<Headers>];

const MALFORMED: Refusal = [401, 'auth_failed', 'headers'];
const FALSE: Refusal = [401, 'auth_failed', 'signature'];
const WRONG_TIME: Refusal = [401, 'clock_or_restart', 'skew'];
const BEFORE_START: Refusal = [401, 'clock_or_restart', 'before_start'];
const WRONG_AUDIENCE: Refusal = [401, 'auth_failed', 'audience'];
const UNKNOWN_KEY: Refusal = [401, 'auth_failed', 'signer'];
const WRONG_ROLE: Refusal = [403, 'forbidden', 'role'];
const WRONG_HASH: Refusal = [401, 'auth_failed', 'body_hash'];

function sign(app: App, changes: Partial<CanonicalParts> = {}): Headers {
  return signatureHeaders(controller, freshParts(app, changes));
}

function withSignature(app: App, change: (hex: string) => string): Headers {
  const headers = sign(app);
  const name = SIGNATURE_HEADERS.signature;
  return { ...headers, [name]: change(headers[name] ?? '') };
}

function without(app: App, name: string): Headers {
  const { [name]: _, ...rest } = sign(app);
  return rest;
}

async function signLongAgo(app: App): Promise<Headers> {
  const headers = sign(app);
  await app.clock.advance(30_001);
  return headers;
}

const wrapping = { sign: (message: Uint8Array) => controller.sign(wrapBytes(message)) };
const flipped = (hex: string) => hex.replace(/^0x./, hex[2] === '0' ? '0x1' : '0x0');

const REFUSED: Case[] = [
  ['unsigned', MALFORMED, () => ({})],
  ...Object.values(SIGNATURE_HEADERS).map(
    (name): Case => [`without ${name}`, MALFORMED, (app) => without(app, name)],
  ),
  ['expired', WRONG_TIME, signLongAgo],
  ['from the future', WRONG_TIME, (app) => sign(app, { timestampMs: app.clock.now() + 30_001 })],
  ['older than the agent', BEFORE_START, (app) => sign(app, { timestampMs: app.clock.now() - 1 })],
  ['for another audience', WRONG_AUDIENCE, (app) => sign(app, { audience: 'someone-else' })],
  [
    'of an unknown key',
    UNKNOWN_KEY,
    (app) => signatureHeaders(stranger, freshParts(app, {}, stranger)),
  ],
  [
    'of a key whose role may not call the route',
    WRONG_ROLE,
    (app) => signatureHeaders(reader, freshParts(app, {}, reader)),
  ],
  [
    'that another key signed in the name of a trusted key',
    FALSE,
    (app) => signatureHeaders(stranger, freshParts(app)),
  ],
  ['with the hash of another body', WRONG_HASH, (app) => sign(app, { bodySha256: sha256Hex('1') })],
  ['with truncated hex', MALFORMED, (app) => withSignature(app, (hex) => hex.slice(0, -2))],
  [
    'with upper-case hex',
    MALFORMED,
    (app) => withSignature(app, (hex) => `0x${hex.slice(2).toUpperCase()}`),
  ],
  ['with one digit changed', FALSE, (app) => withSignature(app, flipped)],
  [
    'whose signer is a hex key instead of an address',
    MALFORMED,
    (app) => sign(app, { signer: `0x${'ab'.repeat(32)}` }),
  ],
  ['wrapped as <Bytes>', FALSE, (app) => signatureHeaders(wrapping, freshParts(app))],
  [
    'of a trusted address whose key is ed25519',
    FALSE,
    (app) => signatureHeaders(edSigner, freshParts(app, { signer: edSigner.hotkey })),
  ],
];

it.each(REFUSED)('rejects a request %s', async (_, [status, code, reason], headersFor) => {
  const app = createApp();
  expect(await post(app, await headersFor(app))).toEqual({ status, code });
  expect(app).toMatchObject({ calls: [], failures: [reason] });
});

it('rejects a changed body', async () => {
  const app = createApp();
  const answer = await post(app, sign(app), URL, '{"reboot": 1}');
  expect(answer).toEqual({ status: 401, code: 'auth_failed' });
  expect(app).toMatchObject({ calls: [], failures: ['body_hash'] });
});

it('checks the signature before the syntax of the body', async () => {
  const app = createApp();
  expect((await post(app, sign(app), URL, '{')).status).toBe(401);
  const broken = signatureHeaders(controller, freshParts(app, { bodySha256: sha256Hex('{') }));
  expect((await post(app, broken, URL, '{')).code).toBe('bad_request');
  expect(app.calls).toEqual([]);
});

it('rejects a replayed request, also after a restart of the agent', async () => {
  const app = createApp();
  const headers = sign(app);
  expect((await post(app, headers)).status).toBe(200);
  expect(await post(app, headers)).toEqual({ status: 401, code: 'auth_failed' });
  expect(app).toMatchObject({ calls: [controller.hotkey], failures: ['replay'] });
  await app.clock.advance(1);
  const restarted = createApp(app.clock);
  expect(await post(restarted, headers)).toEqual({ status: 401, code: 'clock_or_restart' });
  expect(restarted).toMatchObject({ calls: [], failures: ['before_start'] });
});

it('rejects a duplicate header', async () => {
  const app = createApp();
  const address = await app.server.listen({ host: '127.0.0.1', port: 0 });
  for (const name of Object.values(SIGNATURE_HEADERS)) {
    const headers = sign(app);
    const twice = Object.entries(headers).flatMap(([key, value]) =>
      key === name ? [key, value, key, value] : [key, value],
    );
    const raw = [...twice, 'content-type', 'application/json', 'host', 'agent', 'connection'];
    expect(await rawPost(`${address}${URL}`, [...raw, 'close'])).toBe(401);
  }
  expect(app.calls).toEqual([]);
});

it('rejects a route that is not listed, for every signer', async () => {
  const app = createApp();
  const request = { method: 'GET', url: '/forgotten', audience: EXECUTOR_ID };
  const parts = partsToSign(controller, { ...request, timestampMs: app.clock.now() });
  const headers = signatureHeaders(controller, parts);
  const response = await app.server.inject({ url: '/forgotten', headers });
  expect(response.statusCode).toBe(403);
  const head = { method: 'HEAD', url: URL.replace('/reboot', '') } as const;
  expect((await app.server.inject(head)).statusCode).toBe(403);
  expect(app).toMatchObject({ calls: [], failures: ['unlisted_route', 'unlisted_route'] });
});

it('admits public paths, and leaves unknown paths and methods to the router', async () => {
  const app = createApp();
  expect((await app.server.inject('/healthz')).statusCode).toBe(200);
  expect((await app.server.inject('/v1/nothing')).statusCode).toBe(404);
  const put = await app.server.inject({ method: 'PUT', url: '/healthz', payload: '{}' });
  expect(put.statusCode).toBe(405);
  expect(app).toMatchObject({ calls: [null], failures: [] });
});

it('blocks an address after many invalid signatures, and no other address', async () => {
  const app = createApp();
  const attempt = (address: string, headers: Record<string, string>) =>
    app.server.inject({
      method: 'POST',
      url: URL,
      payload: BODY,
      remoteAddress: address,
      headers: { ...JSON_TYPE, ...headers },
    });
  const falsely = () => signatureHeaders(stranger, freshParts(app));
  for (let n = 0; n < BURST; n += 1) {
    expect((await attempt('192.0.2.1', falsely())).statusCode).toBe(401);
  }
  const refused = await attempt('192.0.2.1', sign(app));
  expect(refused.statusCode).toBe(503);
  expect(refused.json().error.code).toBe('auth_busy');
  expect((await attempt('192.0.2.2', sign(app))).statusCode).toBe(200);
  await app.clock.advance(REFILL_MS);
  expect((await attempt('192.0.2.1', sign(app))).statusCode).toBe(200);
});

function wrapBytes(message: Uint8Array): Uint8Array {
  return new TextEncoder().encode(`<Bytes>${new TextDecoder().decode(message)}</Bytes>`);
}

function rawPost(url: string, headers: string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(url, { method: 'POST', headers }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    sent.on('error', reject);
    sent.end(BODY);
  });
}

function setUp(maxAddresses?: number) {
  const clock = createManualClock();
  const limit = createFailureLimit(clock, maxAddresses);
  const exhaust = (address: string) => {
    for (let n = 0; n < BURST; n += 1) limit.failed(address);
  };
  return { clock, limit, exhaust };
}

it('adds one token per interval until the bucket is full', async () => {
  const { clock, limit, exhaust } = setUp();
  exhaust('192.0.2.1');
  limit.failed('192.0.2.1');
  expect(limit.allows('192.0.2.1')).toBe(false);
  await clock.advance(REFILL_MS);
  expect(limit.allows('192.0.2.1')).toBe(true);
  limit.failed('192.0.2.1');
  expect(limit.allows('192.0.2.1')).toBe(false);
  await clock.advance(100 * BURST * REFILL_MS);
  for (let n = 0; n < BURST; n += 1) {
    expect(limit.allows('192.0.2.1')).toBe(true);
    limit.failed('192.0.2.1');
  }
  expect(limit.allows('192.0.2.1')).toBe(false);
});

it('counts the addresses of one IPv6 network as one, and each IPv4 address separately', () => {
  const { limit, exhaust } = setUp();
  exhaust('2001:db8:1:2::1');
  expect(limit.allows('2001:db8:1:2:ffff::9')).toBe(false);
  expect(limit.allows('2001:db8:1:3::1')).toBe(true);
  // Compressed notation: groups of zeros are omitted.
  exhaust('2001:db8::5:6:7:8');
  expect(limit.allows('2001:db8::9:6:7:8')).toBe(false);
  exhaust('::ffff:192.0.2.1');
  expect(limit.allows('::ffff:192.0.2.2')).toBe(true);
});

it('limits the number of addresses, and drops the one that failed longest ago', () => {
  const { limit, exhaust } = setUp(2);
  exhaust('192.0.2.1');
  exhaust('192.0.2.2');
  limit.failed('192.0.2.1');
  exhaust('192.0.2.3');
  const allowed = ['192.0.2.1', '192.0.2.2', '192.0.2.3'].map(limit.allows);
  expect(allowed).toEqual([false, true, false]);
});

const signer = createSigner(new Uint8Array(32).fill(1));
const cases = AGENT_ROUTES.flatMap((route) =>
  ROLES.map((role) => ({ ...route, roles: route.roles as readonly Role[], role })),
);

it.each(cases)('$method $path admits $role as listed', async ({ method, path, roles, role }) => {
  const clock = createManualClock();
  const { server } = createGuardedServer(clock, [{ hotkey: signer.hotkey, roles: [role] }]);
  server.route({ method, url: path, handler: async () => ({}) });
  const url = path.replace(':id', 'x');
  const request = { method, url, audience: EXECUTOR_ID, timestampMs: clock.now() };
  const headers = signatureHeaders(signer, partsToSign(signer, request));
  const response = await server.inject({ method, url, headers });
  expect(response.statusCode).toBe(roles.includes(role) ? 200 : 403);
});

it('admits public paths for reading only, and no unlisted route', () => {
  for (const path of PUBLIC_PATHS) {
    expect([rolesFor('GET', path), rolesFor('HEAD', path)]).toEqual(['public', 'public']);
    expect(rolesFor('POST', path)).toBeNull();
  }
  expect(rolesFor('GET', '/v1/pods/:id/files')).toBeNull();
  expect(rolesFor('HEAD', '/v1/inventory')).toBeNull();
  expect(rolesFor('GET', '')).toBeNull();
});
