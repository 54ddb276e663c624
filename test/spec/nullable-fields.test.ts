/** Compares the table of nullable and optional fields with the responses of both OpenAPI documents. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTestCentral, type TestCentral } from '../fakes/scenes/central-fixture.ts';
import { keysOf, NULLABLE_FIELDS } from './nullable-fields.ts';
import { placesOf, ResponseDocument } from './response-fields.ts';

let central: TestCentral;
let found: Set<string>;
beforeAll(async () => {
  central = await createTestCentral();
  const fields = ['/api/openapi.json', '/portal/openapi.json'].map(async (url) => {
    const answer = await central.server.inject({ method: 'GET', url });
    return placesOf(ResponseDocument.parse(answer.json())).loose;
  });
  const [api, portal] = await Promise.all(fields);
  found = new Set([...(api ?? []), ...(portal ?? [])]);
});
afterAll(() => central.close());

const listed = NULLABLE_FIELDS.flatMap(keysOf);

it('lists every field of a response that may be null or absent', () => {
  expect([...found].filter((key) => !listed.includes(key)).toSorted()).toEqual([]);
});

it('lists no other field, and each field once', () => {
  expect(listed.filter((key) => !found.has(key)).toSorted()).toEqual([]);
  expect(listed.filter((key, index) => listed.indexOf(key) !== index)).toEqual([]);
});

it('gives a reason for each field', () => {
  for (const { fields, reason } of NULLABLE_FIELDS) {
    expect([fields, reason]).toEqual([fields, expect.stringMatching(/^\S.{4,}/)]);
  }
});
