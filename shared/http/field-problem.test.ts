import { expect, it } from 'vitest';
import { z } from 'zod';
import { fieldProblem } from './field-problem.ts';

/** The problem of the first issue, in the form in which the compiler of schemas reports it. */
function problemWith(schema: z.ZodType, value: unknown): string {
  const [issue] = schema.safeParse(value).error?.issues ?? [];
  const { code = '', message = '', ...params } = issue ?? {};
  return fieldProblem({ keyword: code, message, params });
}

it.each([
  [z.string(), 7, 'Must be text'],
  [z.number(), 'x', 'Must be a number'],
  [z.int(), 1.5, 'Must be a whole number'],
  [z.boolean(), 'yes', 'Must be true or false'],
  [z.array(z.string()), {}, 'Must be a list'],
  [z.object({}), [], 'Must be an object'],
  [z.string().min(1), '', 'Must not be empty'],
  [z.string().min(8), 'x', 'Must have at least 8 characters'],
  [z.string().max(3), 'long', 'Must have at most 3 characters'],
  [z.array(z.string()).min(1), [], 'Must not be empty'],
  [z.array(z.string()).max(1), ['a', 'b'], 'Must have at most 1 entry'],
  [z.array(z.string()).max(2), ['a', 'b', 'c'], 'Must have at most 2 entries'],
  [z.number().min(1), 0, 'Must be at least 1'],
  [z.number().gt(0), 0, 'Must be above 0'],
  [z.number().max(5), 6, 'Must be at most 5'],
  [z.number().lt(5), 5, 'Must be below 5'],
  [z.number().multipleOf(5), 6, 'Must be a multiple of 5'],
  [z.email(), 'x', 'Must be an e-mail address'],
  [z.uuid(), 'x', 'Must be a UUID'],
  [z.iso.datetime(), 'x', 'Must be a time such as 2026-11-01T00:00:00Z'],
  [z.enum(['a', 'b', 'c']), 'd', 'Must be a, b or c'],
  [z.literal('a'), 'd', 'Must be "a"'],
  [z.strictObject({}), { x: 1, y: 2 }, 'Unknown fields: x, y'],
  [z.record(z.string().regex(/^A/, 'Not a name'), z.string()), { B: '' }, 'Not a name'],
  [z.string().regex(/^A/), 'B', 'Does not have an allowed form'],
  [z.union([z.string(), z.number()]), true, 'Does not have an allowed form'],
])('%#: %j', (schema, value, expected) => expect(problemWith(schema, value)).toBe(expected));

it('leaves the message of a schema as it is', () => {
  expect(problemWith(z.string().regex(/^A/, 'Not a name'), 'B')).toBe('Not a name');
  expect(
    problemWith(
      z.string().refine(() => false, 'Contains a tab'),
      'B',
    ),
  ).toBe('Contains a tab');
});
