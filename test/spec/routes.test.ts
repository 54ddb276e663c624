/** Compares the interface's route table with the OpenAPI description that the running app serves. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTestCentral, type TestCentral } from '../fakes/scenes/central-fixture.ts';
import { additions, Description, differences, missingInPortal } from './described.ts';
import { OWN_ROUTES, ROUTES_NOT_YET } from './not-yet.ts';
import { ROUTES } from './routes.ts';

let central: TestCentral;
let description: Description;
beforeAll(async () => {
  central = await createTestCentral();
  description = Description.parse((await central.call('GET', '/openapi.json')).body);
});
afterAll(() => central.close());

it('the description is version 1.0.0 in OpenAPI 3.1.0, with both ways to authenticate', () => {
  expect(description).toMatchObject({ openapi: '3.1.0', info: { version: '1.0.0' } });
  expect(Object.keys(description.components.securitySchemes)).toEqual(
    expect.arrayContaining(['JwtAccessBearer', 'ApiKey']),
  );
});

it('serves every route of the table as listed, except those in ROUTES_NOT_YET', () => {
  const hasRoute = (method: string, url: string) =>
    central.server.hasRoute({ method: method as 'GET', url });
  const found = [...differences(description), ...missingInPortal(hasRoute)];
  expect(found.toSorted()).toEqual(Object.values(ROUTES_NOT_YET).flat().toSorted());
});

it('serves no other routes except those in OWN_ROUTES', () => {
  expect(additions(description).toSorted()).toEqual(OWN_ROUTES.toSorted());
});

it('checks the credentials that the table requires before it reads the request', async () => {
  const open = new Set(['GET /executors']);
  for (const { method, path, security } of ROUTES) {
    const name = `${method} ${path}`;
    if (description.paths[path]?.[method.toLowerCase()] === undefined) continue;
    const url = path.replaceAll(/\{[^}]+\}/g, '00000000-0000-4000-8000-000000000000');
    const { status } = await central.call(method as 'GET', url, {
      headers: { 'x-api-key': 'sk_unknown' },
    });
    // Validators sign their requests: the route requires a signature even if it declares no security.
    const isSigned = url.startsWith('/validator/') && method === 'POST';
    const isGuarded = (security === 'JWT' && !open.has(name)) || isSigned;
    expect([name, status === 401]).toEqual([name, isGuarded]);
  }
});
