/** Compares the scopes of API keys with the routes that the running app describes. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  familyOf,
  MONEY_ROUTES,
  ROUTE_FAMILIES,
} from '../../validator/central/accounts/auth/route-scopes.ts';
import { installFakeClock } from '../fakes/external/fake-test-clock.ts';
import { createTestCentral, type TestCentral } from '../fakes/scenes/central-fixture.ts';
import { Description } from './described.ts';

const LOCAL_ROUTES = [
  'GET /_local/outbox',
  'GET /_local/clock',
  'POST /_local/clock',
  'GET /_local/faults',
  'POST /_local/faults',
  'DELETE /_local/faults/{number}',
  'GET /_local/events',
];

let central: TestCentral;
let served: { name: string; method: string; path: string; takesKey: boolean }[];
beforeAll(async () => {
  central = await createTestCentral({ installLocal: installFakeClock });
  const { paths } = Description.parse((await central.call('GET', '/openapi.json')).body);
  served = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([verb, { security }]) => {
      const method = verb.toUpperCase();
      const takesKey = security.some((entry) => 'ApiKey' in entry);
      return { name: `${method} ${path}`, method, path, takesKey };
    }),
  );
});
afterAll(() => central.close());

it('assigns every route of the interface to one family, and no other route', () => {
  const assigned = Object.values(ROUTE_FAMILIES).flat();
  expect(served.length).toBeGreaterThan(100);
  expect(served.filter(({ method, path }) => familyOf(method, path) === null)).toEqual([]);
  expect(assigned.filter((name, at) => assigned.indexOf(name) !== at)).toEqual([]);
  const names = new Set(served.map(({ name }) => name));
  // Of a marketplace on one machine, and not described.
  for (const name of LOCAL_ROUTES) names.add(name);
  expect(assigned.filter((name) => !names.has(name))).toEqual([]);
});

it('assigns exactly the routes that accept an API key to scopes', () => {
  const byScope = new Set(
    [...ROUTE_FAMILIES.any, ...ROUTE_FAMILIES.read, ...ROUTE_FAMILIES.rent].concat(
      ROUTE_FAMILIES.manage,
    ),
  );
  const wrong = served.filter(({ name, takesKey }) => byScope.has(name) !== takesKey);
  // Open routes whose description names credentials, because a valid one adds to the answer.
  expect(wrong.filter(({ name }) => !ROUTE_FAMILIES.open.includes(name))).toEqual([]);
});

it('names money routes that exist', () => {
  const paths = new Set(served.map(({ path }) => path));
  expect(MONEY_ROUTES.filter((path) => !paths.has(path))).toEqual([]);
});

it('rejects a key without the scope on every route that requires it, and only there', async () => {
  const owner = await central.signUp();
  const keyWith = async (scopes: string[]) => {
    const body = { name: scopes.join(), scopes };
    const made = await central.call('POST', '/keys', { headers: owner.session, body });
    return { 'x-api-key': made.body.key as string };
  };
  const refused = async (name: string, headers: Record<string, string>) => {
    const [method = '', path = ''] = name.split(' ');
    const url = path.replaceAll(/\{[^}]+\}/g, '00000000-0000-4000-8000-000000000000');
    // An event stream has no end.
    if (url.endsWith('/stream')) return null;
    const { status, body } = await central.call(method as 'GET', url, { headers });
    return status === 403 ? (/'(\w+)' scope/.exec(body?.message ?? '')?.[1] ?? null) : null;
  };
  const keys = {
    read: await keyWith(['rent', 'manage']),
    rent: await keyWith(['read', 'manage']),
    manage: await keyWith(['read', 'rent']),
  };
  for (const family of ['any', 'read', 'rent', 'manage'] as const) {
    for (const name of ROUTE_FAMILIES[family]) {
      if (name.endsWith('/stream')) continue;
      for (const [lacking, headers] of Object.entries(keys)) {
        const expected = lacking === family ? family : null;
        expect([name, lacking, await refused(name, headers)]).toEqual([name, lacking, expected]);
      }
    }
  }
});
