import { expect, it } from 'vitest';
import { compare, placesOf, ResponseDocument } from './response-fields.ts';

const text = { type: 'string' };
const document = ResponseDocument.parse({
  paths: {
    '/pods': {
      get: {
        responses: {
          200: {
            content: {
              'application/json': {
                schema: { type: 'array', items: { $ref: '#/components/schemas/Pod' } },
              },
            },
          },
        },
      },
    },
  },
  components: {
    schemas: {
      Pod: {
        type: 'object',
        required: ['id', 'keys'],
        properties: {
          id: text,
          note: { anyOf: [text, { type: 'null' }] },
          keys: { type: 'array', items: text },
          answer: {
            anyOf: [{ type: 'array', items: text }, { $ref: '#/components/schemas/Flat' }],
          },
        },
      },
      Flat: {
        type: 'object',
        required: ['lines'],
        properties: { lines: { type: 'array', items: text } },
      },
    },
  },
});
const schema = { type: 'array', items: { $ref: '#/components/schemas/Pod' } };
const compared = (value: unknown) =>
  compare(document, schema, value, { value: '', schema: 'GET /pods' });

it('finds the fields that may be null or absent, and the lists', () => {
  const { loose, lists } = placesOf(document);
  expect([...loose]).toEqual(['Pod.note', 'Pod.answer']);
  expect([...lists]).toEqual(['GET /pods', 'Pod.keys', 'Pod.answer', 'Flat.lines']);
});

it('accepts what the schema allows, and names the lists with items', () => {
  const pod = { id: 'a', note: null, keys: ['k'], answer: { lines: ['l'] }, other: 1 };
  expect(compared([pod])).toEqual({
    problems: [],
    filled: ['GET /pods', 'Pod.keys', 'Flat.lines'],
  });
  expect(compared([])).toEqual({ problems: [], filled: [] });
});

it.each<[string, object, string]>([
  ['null', { id: null, keys: [] }, '[0].id is null'],
  ['a missing member', { keys: [] }, '[0].id is missing'],
  ['another type', { id: 1, keys: [] }, '[0].id is no string'],
  ['a null item', { id: 'a', keys: [null] }, '[0].keys[0] is null'],
  ['a value of no alternative', { id: 'a', keys: [], answer: 1 }, '[0].answer is no array'],
])('reports %s', (_, pod, problem) => {
  expect(compared([pod]).problems).toContain(problem);
});
