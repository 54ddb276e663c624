/** Every operation of the portal with every credential, and with bad requests. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { TestAccount } from '../fakes/scenes/central-fixture.ts';
import { createTestMarket, type TestMarket, testSigner } from '../fakes/scenes/market-fixture.ts';
import { expectRefusal, HOSTILE } from './refusal.ts';
import { PORTAL_OPERATIONS } from './routes.ts';

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';
const WEEK_MS = 7 * 86_400_000;

/** A body for each route that needs one. */
const BODIES: Readonly<Record<string, object>> = {
  '/executors/{id}/update-price': { price_per_gpu: 2.5 },
  '/executors/{id}/update-gpu': { gpu_count: 2 },
  '/executors/{id}/min-gpu-count-for-rental': { min_gpu_count_for_rental: 2 },
  '/executors/{id}/location': { country_code: 'DE' },
  '/executors/{id}/notice-period': { starting_at: '2027-02-01T00:00:00Z', period_in_minute: 5 },
  '/executors/{id}/machine-added': { machine_request_id: UNKNOWN_ID },
};
const GUARDED = PORTAL_OPERATIONS.filter(([, , auth]) => auth === 'token');
const OF_NODES = GUARDED.filter(([, path]) => path.includes('{id}'));

const STRANGER = testSigner(9);

let market: TestMarket;
let account: TestAccount;
let token: string;
let nodeId: string;
beforeAll(async () => {
  market = await createTestMarket();
  account = await market.renter();
  nodeId = (await market.verifiedNode({ gpus: 2 })).id;
  token = await market.logIn();
});
afterAll(() => market.close());

type Sent = { headers?: Record<string, string>; payload?: string };

function send(method: 'GET' | 'POST' | 'DELETE', path: string, { headers = {}, payload }: Sent) {
  const type = payload === undefined ? {} : { 'content-type': 'application/json' };
  return market.server.inject({
    method,
    url: `/portal${path}`,
    headers: { ...headers, ...type },
    ...(payload === undefined ? {} : { payload }),
  });
}

const bearer = (by: string) => ({ authorization: `Bearer ${by}` });
const at = (path: string, id: string) =>
  path
    .replace('{id}', id)
    .replace('{hotkey}', STRANGER.hotkey)
    .replace(/\{\w+\}/, UNKNOWN_ID);
/** Replaces parameters with `*`: their names do not matter. */
const unnamed = (path: string) => path.replaceAll(/\{\w+\}|:\w+/g, '*');
const bodyOf = (path: string) => {
  const body = BODIES[path];
  return body === undefined ? {} : { payload: JSON.stringify(body) };
};

it('serves every route, with and without a trailing slash', () => {
  const missing = PORTAL_OPERATIONS.filter(([method, path]) => {
    const url = `/portal${path.replace('{hotkey}', ':hotkey').replace(/\{\w+\}/, ':id')}`;
    return !market.server.hasRoute({ method, url });
  });
  expect(missing).toEqual([]);
});

it('describes exactly these routes', async () => {
  const answer = await send('GET', '/openapi.json', {});
  const { info, servers, paths } = answer.json() as {
    info: { title: string };
    servers: { url: string }[];
    paths: Record<string, Record<string, { security: object[] }>>;
  };
  expect([info.title, servers]).toEqual(['Podwright provider portal', [{ url: '/portal' }]]);
  const described = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(
      ([method, { security }]) =>
        `${method.toUpperCase()} ${unnamed(path)} ${security.length === 0 ? 'open' : 'token'}`,
    ),
  );
  const listed = PORTAL_OPERATIONS.map(([method, path, by]) => `${method} ${unnamed(path)} ${by}`);
  expect(described.toSorted()).toEqual(listed.toSorted());
});

it('rejects a wrong key, an old timestamp and a replayed signature', async () => {
  const { provider, clock } = market;
  const logIn = (signed: { message?: string; by?: typeof provider; hotkey?: string }) => {
    const { message = String(Math.floor(clock.now() / 1_000)), by = provider } = signed;
    const signature = Buffer.from(by.sign(new TextEncoder().encode(message))).toString('hex');
    const body = { miner_hotkey: signed.hotkey ?? provider.hotkey, message, signature };
    return send('POST', '/auth/login-flexible', { payload: JSON.stringify(body) });
  };
  await clock.advance(1_000);
  const message = String(Math.floor(clock.now() / 1_000));
  expect((await logIn({ message })).statusCode).toBe(200);
  const refused = {
    'used before': await logIn({ message }),
    'of another key': await logIn({ by: STRANGER }),
    'for another hotkey': await logIn({ hotkey: STRANGER.hotkey }),
    'too old': await logIn({ message: String(Number(message) - 301) }),
    'too early': await logIn({ message: String(Number(message) + 302) }),
    'no time': await logIn({ message: 'let me in' }),
  };
  for (const [what, answer] of Object.entries(refused)) {
    expect([what, [400, 401, 422].includes(answer.statusCode)]).toEqual([what, true]);
    expectRefusal(answer, '/portal', what);
  }
});

it('checks credentials before anything else', async () => {
  const short = await market.logIn();
  await market.clock.advance(WEEK_MS);
  const credentials: [what: string, headers: Record<string, string>, status: number][] = [
    ['nothing', {}, 401],
    ['no token', bearer('x.y.z'), 401],
    ['a renter with a session', account.session, 401],
    ['a renter with an API key', account.key, 401],
    ['a renter with an API key as bearer token', bearer(account.apiKey), 401],
    ['an unknown provider token', bearer(`lpk_${'a'.repeat(43)}`), 401],
    ['an expired session', bearer(short), 419],
  ];
  for (const [method, path] of GUARDED) {
    for (const [what, headers, status] of credentials) {
      for (const url of [at(path, nodeId), at(path, '%20')]) {
        const answer = await send(method, url, { headers, payload: '{' });
        expect([method, url, what, answer.statusCode]).toEqual([method, url, what, status]);
        expectRefusal(answer, '/portal', `${method} ${url} ${what}`);
      }
    }
  }
  token = await market.logIn();
});

it('denies providers access to nodes of other providers, and errors name the missing object', async () => {
  const stranger = await market.logIn(STRANGER);
  for (const [method, path] of OF_NODES) {
    const cases = [
      [stranger, nodeId, 403, 'forbidden'],
      [token, UNKNOWN_ID, 404, 'node_not_found'],
      [token, 'no_such-node.1', 404, 'node_not_found'],
      [token, 'a'.repeat(129), 422, 'validation_error'],
      [token, '%00', 422, 'validation_error'],
      [token, "1'%20or%201=1", 422, 'validation_error'],
    ] as const;
    for (const [by, id, status, code] of cases) {
      const answer = await send(method, at(path, id), { headers: bearer(by), ...bodyOf(path) });
      const what = `${method} ${path} ${id}`;
      expect([what, answer.statusCode, answer.json().error.code]).toEqual([what, status, code]);
    }
  }
});

it('rejects hostile bodies and methods that a route does not have', async () => {
  for (const [method, path] of PORTAL_OPERATIONS) {
    const url = at(path, UNKNOWN_ID);
    const headers = path === '/auth/logout' ? {} : bearer(token);
    if (method === 'POST') {
      for (const payload of HOSTILE) {
        const what = `${method} ${url} ${payload.slice(0, 40)}`;
        expectRefusal(await send(method, url, { headers, payload }), '/portal', what);
      }
    }
    const other = await market.server.inject({ method: 'PATCH', url: `/portal${url}`, headers });
    expect([url, other.statusCode, other.headers.allow]).toEqual([
      url,
      405,
      expect.stringContaining(method),
    ]);
  }
  const answer = await send('GET', '/auth/me/', { headers: bearer(token) });
  expect(answer.json().miner_hotkey).toBe(market.provider.hotkey);
});

it('rejected requests change nothing', async () => {
  const headers = bearer(token);
  const { data } = (await send('GET', '/executors', { headers })).json();
  expect(data).toMatchObject([{ id: nodeId, status: 'available', price_per_gpu: 2.2 }]);
  expect((await send('GET', '/auth/me', { headers })).json()).toMatchObject({
    email: null,
    opt_in_status: true,
    machine_request_subscription: [],
  });
});
