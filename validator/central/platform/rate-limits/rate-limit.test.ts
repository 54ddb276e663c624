import { afterEach, expect, it } from 'vitest';
import {
  createTestCentral,
  type TestCentral,
  type TestCentralOverrides,
} from '../../../../test/fakes/scenes/central-fixture.ts';
import { DEFAULT_LIMITS, rateLimitsFrom } from './policies.ts';

let central: TestCentral;
afterEach(() => central.close());

async function start(change: Partial<typeof DEFAULT_LIMITS> = {}, more: TestCentralOverrides = {}) {
  central = await createTestCentral({ rateLimits: { ...DEFAULT_LIMITS, ...change }, ...more });
}

const rate = (quota: number, windowMs = 60_000) => ({ quota, windowMs });

async function repeat(times: number, path: string, headers: Record<string, string> = {}) {
  const statuses: number[] = [];
  for (let index = 0; index < times; index += 1) {
    statuses.push((await central.call('GET', path, { headers })).status);
  }
  return statuses;
}

it('allows an address 600 requests a minute, and returns the number of remaining requests', async () => {
  await start();
  const first = await central.call('GET', '/machines');
  expect(first.headers).toMatchObject({
    'ratelimit-policy': '"default";q=600;w=60',
    ratelimit: '"default";r=599;t=1',
  });
  expect(new Set(await repeat(599, '/machines'))).toEqual(new Set([200]));
  const refused = await central.call('GET', '/machines');
  expect(refused).toMatchObject({
    status: 429,
    headers: { 'retry-after': '60', ratelimit: '"default";r=0;t=60' },
    body: { error: { code: 'rate_limited' }, status_code: 429, error_id: null },
  });
  expect(refused.body.request_id).toBe(refused.headers['x-request-id']);
  await central.clock.advance(60_000);
  expect(await repeat(2, '/machines')).toEqual([200, 200]);
});

it('counts requests that match no route, and does not count health probes', async () => {
  await start({ address: rate(3) });
  expect(await repeat(5, '/')).toEqual([200, 200, 200, 200, 200]);
  expect(await repeat(5, '/version')).toEqual([200, 200, 200, 200, 200]);
  expect((await central.call('GET', '/')).headers).not.toHaveProperty('ratelimit');
  expect(await repeat(5, '/nothing')).toEqual([404, 404, 404, 429, 429]);
});

it('counts requests per API key, and counts requests of all sessions of an account together', async () => {
  await start({ credential: rate(4), address: rate(1_000) });
  const [one, other] = [await central.signUp(), await central.signUp()];
  expect(await repeat(6, '/ssh-keys', one.key)).toEqual([200, 200, 200, 200, 429, 429]);
  expect(await repeat(6, '/ssh-keys', one.session)).toEqual([200, 200, 200, 200, 429, 429]);
  expect(await repeat(5, '/ssh-keys', other.key)).toEqual([200, 200, 200, 200, 429]);
  // Requests with invalid credentials count only towards the rate of the address.
  expect(await repeat(2, '/ssh-keys', { 'x-api-key': 'sk_no' })).toEqual([401, 401]);
});

it('accepts the deletion of a pod from a client that has used up all other rates', async () => {
  await start({ address: rate(4), credential: rate(2), urgent: rate(2) });
  const account = await central.signUp();
  expect(await repeat(3, '/ssh-keys', account.key)).toEqual([200, 200, 429]);
  const remove = () =>
    central.call('DELETE', '/pods/00000000-0000-4000-8000-000000000001', { headers: account.key });
  expect(await remove()).toMatchObject({
    status: 404,
    headers: { ratelimit: '"urgent";r=1;t=30' },
  });
  expect((await remove()).status).toBe(404);
  expect((await remove()).status).toBe(429);
});

it('if one policy counts a request twice, returns the count with fewer remaining requests', async () => {
  await start({ credential: rate(10) });
  const account = await central.signUp();
  const { headers } = await central.call('GET', '/ssh-keys', { headers: account.key });
  expect(headers).toMatchObject({
    'ratelimit-policy': '"default";q=10;w=60',
    ratelimit: '"default";r=9;t=6',
  });
});

it('reads X-Forwarded-For from trusted proxies only', async () => {
  await start({ address: rate(2) });
  const from = (address: string) => ({ 'x-forwarded-for': address });
  expect(await repeat(2, '/machines', from('192.0.2.1'))).toEqual([200, 200]);
  expect(await repeat(1, '/machines', from('192.0.2.2'))).toEqual([429]);
  await central.close();
  await start({ address: rate(2) }, { trustedProxies: ['127.0.0.1'] });
  expect(await repeat(3, '/machines', from('192.0.2.1'))).toEqual([200, 200, 429]);
  expect(await repeat(3, '/machines', from('192.0.2.2'))).toEqual([200, 200, 429]);
  expect(await repeat(1, '/machines', from('2001:db8::1'))).toEqual([200]);
  expect(await repeat(2, '/machines', from('2001:db8::2'))).toEqual([200, 429]);
});

it.each([
  ['log-ins', 'POST', '/users/login', { email: 'a@example.com', password: 'wrong password' }],
  ['sign-ups', 'POST', '/users', { email: 'not an address', password: 'x' }],
  ['searches', 'GET', '/users/search?email=a@example.com', undefined],
] as const)('allows an address ten %s a minute', async (_, method, path, body) => {
  await start();
  const send = () => central.call(method, path, body === undefined ? {} : { body });
  for (let index = 0; index < 10; index += 1) expect((await send()).status).not.toBe(429);
  const refused = await send();
  expect([refused.status, refused.headers['retry-after']]).toEqual([429, '60']);
  expect((await central.call('GET', '/machines')).status).toBe(200);
  await central.clock.advance(6_000);
  expect((await send()).status).not.toBe(429);
});

it('a request that gets 429 stores neither a rental nor a claim on its Idempotency-Key', async () => {
  await start({ credential: rate(1) });
  const account = await central.signUp();
  const path = '/executors/00000000-0000-4000-8000-000000000000/rent';
  const sent = {
    headers: { ...account.key, 'idempotency-key': 'k' },
    body: { pod_name: 'x' },
  };
  await central.call('GET', '/ssh-keys', { headers: account.key });
  expect((await central.call('POST', path, sent)).status).toBe(429);
  expect(await central.ports.db.selectFrom('idempotency').selectAll().execute()).toEqual([]);
  await central.clock.advance(60_000);
  const later = await central.call('POST', path, sent);
  expect([later.status, later.headers['idempotent-replayed']]).toEqual([404, undefined]);
});

it('reads the quota of each rate from the environment variable', () => {
  expect(rateLimitsFrom({})).toEqual(DEFAULT_LIMITS);
  expect(rateLimitsFrom({ CENTRAL_RATE_LIMIT_SEARCH: 3 })).toEqual({
    ...DEFAULT_LIMITS,
    search: { quota: 3, windowMs: 60_000 },
  });
});
