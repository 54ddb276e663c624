/** CORS, security headers, body limits, request ids and error bodies of every response. */
import { afterEach, expect, it } from 'vitest';
import {
  createTestCentral,
  type TestCentral,
  type TestCentralOverrides,
} from '../../../../test/fakes/scenes/central-fixture.ts';

let central: TestCentral;
afterEach(() => central.close());

async function start(overrides: TestCentralOverrides = {}) {
  central = await createTestCentral(overrides);
}

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE' | 'OPTIONS' | 'HEAD';

function send(method: Method, url: string, headers: Record<string, string> = {}, payload?: string) {
  return central.server.inject({
    method,
    url,
    headers,
    ...(payload === undefined ? {} : { payload }),
  });
}

const PAGE = 'https://console.example.org';
const PREFLIGHT = {
  'access-control-request-method': 'POST',
  'access-control-request-headers': 'x-api-key,idempotency-key',
};

it('does not allow web pages of other origins by default', async () => {
  await start();
  const { headers } = await send('GET', '/api/machines', { origin: PAGE });
  expect(headers).not.toHaveProperty('access-control-allow-origin');
  expect((await send('OPTIONS', '/api/machines', { origin: PAGE, ...PREFLIGHT })).statusCode).toBe(
    405,
  );
});

it('allows web pages of configured origins only, also on error responses', async () => {
  await start({ corsOrigins: [PAGE] });
  for (const [url, status] of [
    ['/api/machines', 200],
    ['/api/nothing', 404],
    ['/api/pods', 401],
  ] as const) {
    const answer = await send('GET', url, { origin: PAGE });
    expect([url, answer.statusCode]).toEqual([url, status]);
    expect(answer.headers).toMatchObject({
      'access-control-allow-origin': PAGE,
      'access-control-expose-headers': expect.stringContaining('X-Request-Id'),
      vary: 'Origin',
    });
    expect(answer.headers).not.toHaveProperty('access-control-allow-credentials');
  }
  const { headers } = await send('GET', '/api/machines', { origin: 'https://evil.example.org' });
  expect(headers).not.toHaveProperty('access-control-allow-origin');
  const preflight = await send('OPTIONS', '/api/executors/x/rent', { origin: PAGE, ...PREFLIGHT });
  expect([preflight.statusCode, preflight.json()]).toEqual([200, {}]);
  expect(preflight.headers).toMatchObject({
    'access-control-allow-methods': expect.stringContaining('DELETE'),
    'access-control-allow-headers': expect.stringMatching(/X-API-Key.*Idempotency-Key/),
    'access-control-max-age': '600',
    'x-request-id': expect.any(String),
  });
});

it('sets security headers, and HSTS only behind TLS', async () => {
  await start({ trustedProxies: ['127.0.0.1'] });
  for (const url of ['/api', '/api/nothing', '/api/pods', '/portal/executors']) {
    const { headers } = await send('GET', url);
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
    });
    expect(headers).not.toHaveProperty('strict-transport-security');
  }
  const behind = await send('GET', '/api', { 'x-forwarded-proto': 'https' });
  expect(behind.headers['strict-transport-security']).toMatch(/^max-age=31536000/);
});

it('limits the size of bodies by the authentication rule of the route', async () => {
  await start();
  const account = await central.signUp();
  const json = { 'content-type': 'application/json' };
  const body = (kib: number) => JSON.stringify({ name: 'x'.repeat(kib * 1024) });
  const statusOf = async (url: string, headers: Record<string, string>, kib: number) =>
    (await send('POST', url, { ...json, ...headers }, body(kib))).statusCode;
  expect(await statusOf('/api/users/login', {}, 15)).toBe(422);
  expect(await statusOf('/api/users/login', {}, 17)).toBe(413);
  expect(await statusOf('/api/keys', account.session, 17)).toBe(413);
  expect(await statusOf('/api/templates', account.key, 250)).toBe(422);
  expect(await statusOf('/api/templates', account.key, 257)).toBe(413);
  // The body of a request without a credential is not read.
  expect(await statusOf('/api/templates', {}, 257)).toBe(401);
});

it.each<[string, Method, string, number]>([
  ['an answer', 'GET', '/api/machines', 200],
  ['a request without a body', 'HEAD', '/api/machines', 200],
  ['an unknown path', 'GET', '/nowhere', 404],
  ['an unknown method', 'DELETE', '/api/machines', 405],
  ['options', 'OPTIONS', '/api/machines', 405],
  ['no credential', 'GET', '/api/pods', 401],
  ['a malformed path', 'GET', '/api/%', 400],
  ['a malformed body', 'POST', '/api/users', 400],
  ['a content type that is not accepted', 'PUT', '/api/users/me', 401],
])(
  'the response to %s has the request id that the client sent, or a new one if that id is invalid',
  async (_, method, url, status) => {
    await start();
    const payload = method === 'POST' ? '{' : undefined;
    const headers = { ...(method === 'POST' ? { 'content-type': 'application/json' } : {}) };
    const own = await send(method, url, { ...headers, 'x-request-id': 'mine.12-34' }, payload);
    expect([own.statusCode, own.headers['x-request-id']]).toEqual([status, 'mine.12-34']);
    for (const id of ['short', 'x'.repeat(65), 'with space inside', 'umläutchen']) {
      const answer = await send(method, url, { ...headers, 'x-request-id': id }, payload);
      expect(answer.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
      if (status >= 400 && method !== 'HEAD') {
        expect(answer.json().request_id).toBe(answer.headers['x-request-id']);
      }
    }
  },
);

it('names a body that is nested too deeply', async () => {
  await start();
  const { key } = await central.signUp();
  const depth = 20_000;
  const body = '['.repeat(depth) + ']'.repeat(depth);
  const headers = { 'content-type': 'application/json', ...key };
  const { statusCode, payload } = await send('POST', '/api/templates', headers, body);
  expect([statusCode, JSON.parse(payload).message]).toEqual([
    400,
    'The request body is nested too deeply',
  ]);
});

it('a path with a trailing slash returns the same response as without it, and no redirect', async () => {
  await start();
  const account = await central.signUp();
  for (const path of ['/machines', '/ssh-keys', '/users/me', '/templates', '/pods', '/nothing']) {
    const [plain, slashed] = [
      await send('GET', `/api${path}`, account.key),
      await send('GET', `/api${path}/?page=1`, account.key),
    ];
    expect([path, slashed.statusCode]).toEqual([path, plain.statusCode]);
    if (plain.statusCode === 200) expect(slashed.json()).toEqual(plain.json());
  }
});

it('returns problem details only if the Accept header requests them', async () => {
  await start();
  const problem = 'application/problem+json';
  const answer = await send('POST', '/api/users/login', { accept: `${problem}, */*;q=0.1` });
  expect(answer.headers['content-type']).toBe(`${problem}; charset=utf-8`);
  expect(answer.json()).toMatchObject({
    type: '/errors/validation_error',
    title: 'validation error',
    status: 422,
    detail: 'Request validation failed',
    instance: answer.headers['x-request-id'],
    code: 'validation_error',
    hint: expect.stringContaining('body'),
    validation_errors: [
      { field: 'body', type: 'missing' },
      { field: 'body.email', type: 'missing' },
      { field: 'body.password', type: 'missing' },
    ],
  });
  for (const accept of ['*/*', 'application/json', 'application/*', `${problem};q=0`]) {
    const { headers, ...other } = await send('GET', '/api/pods', { accept });
    expect([accept, headers['content-type']]).toEqual([accept, 'application/json; charset=utf-8']);
    expect(other.json().error.code).toBe('unauthorized');
  }
  expect((await send('GET', '/api/nothing', { accept: problem })).json().status).toBe(404);
});
