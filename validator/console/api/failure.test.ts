import { expect, it } from 'vitest';
import { ApiFailure, failureFrom, failureOf, unreachable } from './failure.ts';

it('reads problem details', () => {
  const failure = failureFrom(
    422,
    {
      detail: 'A field failed',
      code: 'validation_failed',
      hint: 'Change it.',
      validation_errors: [{ field: 'body.name', message: 'is too long', type: 'x' }, { field: 1 }],
    },
    'r1',
  );
  expect(failure.message).toBe('A field failed');
  expect(failure.facts).toEqual({
    status: 422,
    code: 'validation_failed',
    hint: 'Change it.',
    requestId: 'r1',
    problems: [{ field: 'body.name', message: 'is too long' }],
  });
});

it.each([null, 'text', [], { detail: 1, validation_errors: 'x' }])(
  'describes an answer of a proxy: %j',
  (body) => {
    const failure = failureFrom(502, body, null);
    expect(failure.message).toBe('The server answered with status 502');
    expect(failure.facts).toMatchObject({ code: 'status_502', problems: [] });
  },
);

it('keeps failures, and wraps other errors', () => {
  const lost = unreachable();
  expect(failureOf(lost)).toBe(lost);
  expect(failureOf(new TypeError('x is undefined'))).toBeInstanceOf(ApiFailure);
  expect(failureOf('text').facts.code).toBe('page_error');
});
