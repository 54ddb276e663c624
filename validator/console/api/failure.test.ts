import { expect, it } from 'vitest';
import {
  ApiFailure,
  failureFrom,
  failureOf,
  isRepeated,
  mayHaveSucceeded,
  mayPass,
  namesNothing,
  notSent,
  unreachable,
} from './failure.ts';
import { refusalOf } from './pod-socket.ts';

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
  expect(mayHaveSucceeded(notSent('Choose a template.'))).toBe(false);
});

it('repeats a request twice, and only after failures that may end by themselves', () => {
  expect(isRepeated(0, unreachable())).toBe(true);
  expect(isRepeated(1, failureFrom(503, {}, null))).toBe(true);
  expect(isRepeated(2, failureFrom(503, {}, null))).toBe(false);
  expect(isRepeated(0, failureFrom(500, {}, null))).toBe(false);
  expect(isRepeated(0, failureFrom(409, {}, null))).toBe(false);
  expect(isRepeated(0, failureOf(new Error('odd')))).toBe(false);
});

it.each<readonly [string, ApiFailure, boolean]>([
  ['unreachable', unreachable(), true],
  ['an error of the page', failureOf(new Error('odd')), true],
  ['an answer that is not JSON', failureFrom(200, null, null), true],
  ...[408, 409, 425, 429, 500, 502, 503].map(
    (status) => [`${status}`, failed(status), true] as const,
  ),
  ...[400, 401, 402, 403, 404, 405, 410, 413, 419, 422].map(
    (status) => [`${status}`, failed(status), false] as const,
  ),
  ['400 while the pod starts', failureFrom(400, { code: 'pod_state_conflict' }, null), true],
  ['a form that was not sent', notSent('Choose a template.'), false],
  ['a refused connection', refusalOf({ code: 4_403, reason: 'forbidden' }) ?? failed(500), true],
])('%s may pass: %j', (_, failure, expected) => expect(mayPass(failure)).toBe(expected));

it('an address names nothing if the server has no such object, or rejects the id', () => {
  const rejected = (...fields: string[]) =>
    failureFrom(422, { validation_errors: fields.map((field) => ({ field, message: 'x' })) }, null);
  expect(namesNothing(failed(404))).toBe(true);
  expect(namesNothing(failed(410))).toBe(true);
  expect(namesNothing(rejected('path.id'))).toBe(true);
  expect(namesNothing(rejected('path.id', 'query.page'))).toBe(false);
  expect(namesNothing(rejected())).toBe(false);
  expect(namesNothing(failed(500))).toBe(false);
});

function failed(status: number): ApiFailure {
  return failureFrom(status, { code: 'x' }, null);
}
