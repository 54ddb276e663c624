/**
 * Sends every kind of bad request to every route of the running app: each gets the error body, a documented code and a
 * hint, and reveals no internals.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { isEndless } from '../fakes/faults/fuzz.ts';
import {
  createTestCentral,
  type TestAccount,
  type TestCentral,
} from '../fakes/scenes/central-fixture.ts';
import { expectRefusal, HOSTILE } from './refusal.ts';

type Parameter = { in: string; name: string };
type Operation = { parameters?: Parameter[] };
type Route = {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: string;
  parameters: readonly Parameter[];
};

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';
const JSON_TYPE = { 'content-type': 'application/json' };

let central: TestCentral;
let account: TestAccount;
let routes: Route[] = [];

beforeAll(async () => {
  central = await createTestCentral();
  account = await central.signUp();
  const { body } = await central.call('GET', '/openapi.json');
  const paths = Object.entries(body.paths as Record<string, Record<string, Operation>>);
  routes = paths.flatMap(([path, item]) =>
    Object.entries(item).map(([method, { parameters = [] }]) => ({
      method: method.toUpperCase() as Route['method'],
      path: path.replace(/^\/api/, ''),
      parameters,
    })),
  );
});

afterAll(() => central.close());

const withIds = ({ path }: Route, id: string) => path.replaceAll(/\{[^}]+\}/g, id);

async function send(route: Route, url: string, headers: Record<string, string>, payload?: string) {
  return central.server.inject({
    method: route.method,
    url: url.startsWith('/portal') || url.startsWith('/v1/') ? url : `/api${url}`,
    headers,
    ...(payload === undefined ? {} : { payload }),
  });
}

it('the description contains the whole interface', () => {
  expect(routes.length).toBeGreaterThan(40);
});

it('rejects hostile bodies on every route that accepts a body', async () => {
  for (const route of routes.filter(({ method }) => ['POST', 'PUT', 'PATCH'].includes(method))) {
    const url = withIds(route, UNKNOWN_ID);
    for (const payload of HOSTILE) {
      const headers = { ...JSON_TYPE, ...account.key };
      const what = `${route.method} ${url} ${payload.slice(0, 40)}`;
      expectRefusal(await send(route, url, headers, payload), `/api${url}`, what);
    }
  }
});

it('rejects malformed ids, unknown methods and broken credentials on every route', async () => {
  for (const route of routes) {
    for (const id of ['not-a-uuid', '..%2f..%2fetc', "1'%20or%201=1", '%00', 'x'.repeat(400)]) {
      const url = withIds(route, id);
      if (isEndless(url)) continue;
      expectRefusal(await send(route, url, account.key), `/api${url}`, `${route.method} ${url}`);
    }
    const url = withIds(route, UNKNOWN_ID);
    for (const headers of [
      { 'x-api-key': 'sk_nobody' },
      { authorization: 'Bearer not.a.token' },
      { authorization: 'Basic !!!' },
      { 'x-api-key': account.apiKey, authorization: 'Bearer sk_other' },
    ]) {
      expectRefusal(
        await send(route, url, headers as unknown as Record<string, string>),
        `/api${url}`,
        `${route.method} ${url} ${JSON.stringify(headers).slice(0, 60)}`,
      );
    }
    const trace = await central.server.inject({ method: 'TRACE' as 'GET', url: `/api${url}` });
    expect([url, [404, 405].includes(trace.statusCode)]).toEqual([url, true]);
  }
});

it('rejects malformed queries and names the field', async () => {
  for (const query of [
    'page=x',
    'size=-1',
    'price_lte=cheap',
    'max_distance_mile=5',
    'gpu_count_gte=1.5',
  ]) {
    const { status, body } = await central.call('GET', `/executors?${query}`);
    expect([query, status, body.error.code]).toEqual([query, 422, 'validation_error']);
    expect(body.validation_errors[0].field).toMatch(/^query\./);
  }
});

it('errors contain the invalid value and the allowed values for every parameter of every route', async () => {
  let refusals = 0;
  for (const route of routes) {
    const queries = route.parameters.filter((parameter) => parameter.in === 'query');
    const wrong = (value: string) =>
      queries.map(({ name }) => `${name}=${encodeURIComponent(value)}`).join('&');
    for (const [id, query] of [
      ['not-a-uuid', ''],
      [UNKNOWN_ID, wrong('1e2')],
      [UNKNOWN_ID, wrong('x'.repeat(5_000))],
      [UNKNOWN_ID, `${wrong('1')}&${wrong('2')}`],
    ] as const) {
      const url = `${withIds(route, id)}?${query}`;
      if (isEndless(url)) continue;
      const { statusCode, body } = await send(route, url, account.key);
      const texts: { field: string; message: string }[] =
        statusCode === 422 ? (JSON.parse(body).validation_errors ?? []) : [];
      for (const { field, message } of texts.filter((text) => !text.field.startsWith('body'))) {
        refusals += 1;
        expect([url.slice(0, 99), field, message]).toEqual([
          expect.any(String),
          expect.stringMatching(/^(path|query)\.\w+$/),
          expect.stringMatching(
            /^(".*"|The given value|Given 2 times|Not |Neither |Field required)/,
          ),
        ]);
        expect(message.length).toBeLessThan(200);
      }
    }
  }
  expect(refusals).toBeGreaterThan(100);
});

it('rejects the character NUL, which some databases cannot store', async () => {
  const { key: headers } = account;
  const body = { name: 'a\u0000b', docker_image: 'ubuntu' };
  const refused = await central.call('POST', '/templates', { headers, body });
  expect([refused.status, refused.body.error.code]).toEqual([422, 'validation_error']);
  expect(refused.body.validation_errors[0].field).toBe('body.name');
  const { status } = await central.call('GET', '/pods?machine_names=a%00b', { headers });
  expect(status).toBe(422);
});

it('rejects half a surrogate pair even in fields without such a check in their schema, and accepts whole pairs', async () => {
  const { key: headers } = account;
  const template = { name: 'x', docker_image: 'ubuntu' };
  const make = (change: object) =>
    central.call('POST', '/templates', { headers, body: { ...template, ...change } });
  for (const [change, field] of [
    [{ environment: { A: 'x\udc00' } }, 'body.environment.A'],
    [{ readme: '\ud83dx' }, 'body.readme'],
  ] as const) {
    const { status, body } = await make(change);
    expect([status, body.validation_errors[0].field]).toEqual([422, field]);
  }
  expect((await make({ readme: '\ud83d\ude00' })).body.readme).toBe('\u{1f600}');
});

it('accepts only decimal numbers in queries, and only the view `summary`', async () => {
  for (const query of [
    ...['price_lte=0x10', 'size=1e2', 'page=+1', 'lat=%205', 'gpu_count_gte=1.5', 'size=1_0'],
    ...['price_gte=Infinity', `price_gte=${'9'.repeat(400)}`, 'price_lte=.5', 'page=1&page=2'],
    ...['view=full', 'view=Summary'],
  ]) {
    const { status, body } = await central.call('GET', `/executors?${query}`);
    expect([query, status]).toEqual([query, 422]);
    expect(body.validation_errors[0].field).toBe(`query.${query.split('=')[0]}`);
  }
  const good =
    'price_lte=10.50&lat=-33.9&lon=007&max_distance_mile=1&size=1000&page=1&view=summary';
  expect((await central.call('GET', `/executors?${good}`)).status).toBe(200);
});

it('rejected requests change nothing', async () => {
  const { body } = await central.call('GET', '/pods', { headers: account.key });
  expect(body).toEqual([]);
  const me = await central.call('GET', '/users/me', { headers: account.key });
  expect(me.body).toMatchObject({ id: account.id, email: account.email, admin: false });
});
