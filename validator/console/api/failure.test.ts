import { expect, it } from 'vitest';
import { incomplete } from '../market/rent-request.ts';
import {
  ApiFailure,
  failureFrom,
  failureOf,
  isRepeated,
  mayHaveSucceeded,
  unreachable,
} from './failure.ts';

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

it('keeps the Idempotency-Key only while the failed request may have had its effect', () => {
  const failed = (status: number, code: string) => failureFrom(status, { code }, null);
  expect(mayHaveSucceeded(unreachable())).toBe(true);
  expect(mayHaveSucceeded(new Error('stream ended'))).toBe(true);
  expect(mayHaveSucceeded(failed(500, 'internal_error'))).toBe(true);
  expect(mayHaveSucceeded(failed(409, 'idempotency_in_progress'))).toBe(true);
  expect(mayHaveSucceeded(failed(422, 'idempotency_key_reused'))).toBe(true);
  expect(mayHaveSucceeded(failed(402, 'insufficient_balance'))).toBe(false);
  expect(mayHaveSucceeded(incomplete('Choose a template.'))).toBe(false);
});

it('repeats a request twice, and only after failures that may end by themselves', () => {
  expect(isRepeated(0, unreachable())).toBe(true);
  expect(isRepeated(1, failureFrom(503, {}, null))).toBe(true);
  expect(isRepeated(2, failureFrom(503, {}, null))).toBe(false);
  expect(isRepeated(0, failureFrom(500, {}, null))).toBe(false);
  expect(isRepeated(0, failureFrom(409, {}, null))).toBe(false);
  expect(isRepeated(0, failureOf(new Error('odd')))).toBe(false);
});
