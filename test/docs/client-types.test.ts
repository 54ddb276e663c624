import { expect, it } from 'vitest';
import { typesOf } from './client-types.ts';

const text = { type: 'string' };
const document = (schemas: object, paths: object = {}) =>
  typesOf({ components: { schemas }, paths }, 'Test');

it.each([
  [{ type: ['string', 'null'] }, 'string | null'],
  [{ type: 'integer' }, 'number'],
  [{ enum: ['a', 2] }, '"a" | 2'],
  [{ const: true }, 'true'],
  [{ anyOf: [{ $ref: '#/components/schemas/Pod' }, { type: 'null' }] }, 'Pod | null'],
  [{ type: 'array', items: { type: ['number', 'null'] } }, '(number | null)[]'],
  [{ type: 'array', prefixItems: [text, { type: 'number' }], items: false }, '[string, number]'],
  [{ type: 'object', additionalProperties: text }, 'Record<string, string>'],
  [
    { type: 'object', properties: { id: text, 'a-b': text }, required: ['id'] },
    '{ id: string; "a-b"?: string | undefined }',
  ],
  [{}, 'unknown'],
])('writes %j as %s', (schema, type) => {
  expect(document({ Model: schema })).toContain(`export type Model = ${type};`);
});

it('writes the members of an operation', () => {
  const json = (schema: object) => ({ content: { 'application/json': { schema } } });
  const operation = {
    parameters: [
      { name: 'id', in: 'path', required: true, schema: text },
      { name: 'limit', in: 'query', schema: { type: 'integer' } },
      { name: 'Idempotency-Key', in: 'header', schema: text },
    ],
    requestBody: json({ type: 'object', properties: { name: text }, required: ['name'] }),
    responses: { 201: json(text), 404: json({}) },
  };
  expect(document({}, { '/pods/{id}': { post: operation } })).toContain(
    `'POST /pods/{id}': { params: { id: string }; query: { limit?: number | undefined }; body: { name: string }; response: string };`,
  );
});

it('lists the operations that accept an Idempotency-Key', () => {
  const key = { name: 'Idempotency-Key', in: 'header', schema: text };
  const paths = {
    '/pods': { post: { parameters: [key], responses: {} }, get: { responses: {} } },
  };
  expect(document({}, paths)).toContain(
    "KEYED_TEST_OPERATIONS: ReadonlySet<string> = new Set([\n  'POST /pods',\n]);",
  );
});

it('writes an operation without members', () => {
  const operation = { responses: { 200: { content: { 'text/event-stream': { schema: text } } } } };
  expect(document({}, { '/stream': { get: operation } })).toContain(
    `'GET /stream': { params: Record<string, never>; query: Record<string, never>; body: undefined; response: unknown };`,
  );
});
