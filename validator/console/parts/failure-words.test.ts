import { expect, it } from 'vitest';
import { failureFrom, notSent, ofSession, unreachable } from '../api/failure.ts';
import { describeFailure, isForPrograms } from './failure-words.ts';

const failed = (status: number, body: object) => failureFrom(status, body, 'r1');
const LABELS = new Map([
  ['amount', 'Duration (minutes)'],
  ['name', 'Name'],
]);

it('keeps the hint of the server if it is for people', () => {
  const failure = failed(409, { code: 'conflict', detail: 'It failed', hint: 'Delete one first.' });
  expect(describeFailure(failure)).toEqual({
    message: 'It failed',
    hint: 'Delete one first.',
    link: null,
    problems: [],
  });
});

it.each([
  [404, 'pod_not_found', 'List your pods with GET /pods.', /removed/, '/pods'],
  [403, 'insufficient_balance', 'Top up (PUT /users/me/auto-top-up).', /Add funds/, '/money'],
  [401, 'unauthorized', 'Send a valid API key in X-API-Key.', /what you have entered/, undefined],
  [403, 'forbidden', 'Use a credential that may do this.', /may not do this/, undefined],
  [409, 'conflict', 'Read the resource again and retry.', /Load the page again/, undefined],
  [503, 'other', 'Retry after the time in Retry-After.', /in a minute/, undefined],
])('replaces a hint for programs: %i %s', (status, code, hint, expected, path) => {
  const words = describeFailure(failed(status, { code, hint }));
  expect(words.hint).toMatch(expected);
  expect(words.link?.path).toBe(path);
});

it('names the fields of a form by their labels', () => {
  const body = {
    code: 'validation_error',
    detail: 'Request validation failed',
    hint: 'Fix body.amount and retry.',
    validation_errors: [
      { field: 'body.amount', message: 'Must be at least 1' },
      { field: 'body.user_key[2]', message: 'Must not be empty' },
    ],
  };
  expect(describeFailure(failed(422, body), { labels: LABELS })).toEqual({
    message: 'The form cannot be used as it is',
    hint: 'Correct the marked field: “Duration (minutes)”.',
    link: null,
    problems: ['User key 2: Must not be empty'],
  });
  const words = describeFailure(notSent('x', [{ field: 'body.name', message: 'y' }]), {
    labels: LABELS,
  });
  expect(words.hint).toBe('Correct the marked field: “Name”.');
});

it('states that the address is wrong if the server rejects a part of it', () => {
  const body = {
    code: 'validation_error',
    validation_errors: [{ field: 'query.min_price', message: '"x" is not a number' }],
  };
  expect(describeFailure(failed(422, body))).toMatchObject({
    message: 'The address of this page is not right',
    problems: ['Min price: "x" is not a number'],
  });
});

it('states what to do without a connection, and that typed text stays', () => {
  expect(describeFailure(unreachable(), { hasRetry: true }).hint).toContain('choose “Try again”');
  expect(describeFailure(unreachable()).hint).not.toContain('Try again');
  const { hint } = describeFailure(unreachable(), { labels: LABELS });
  expect(hint).toBe(
    'Check your connection, then send the form again. What you have typed stays in the form.',
  );
});

it('requests a log-in only if a session has ended', () => {
  const refusal = failed(401, { code: 'unauthorized', detail: 'The password is wrong' });
  expect(describeFailure(refusal).message).toBe('The password is wrong');
  expect(describeFailure(ofSession(refusal, 'token')).message).toBe('Your session has ended');
});

it('recognises hints for programs', () => {
  for (const hint of ['Fix path.id and retry.', 'Use POST /pods.', 'Read the pod and retry.']) {
    expect(isForPrograms(hint)).toBe(true);
  }
  expect(isForPrograms('Wait 12 seconds, then retry. The request had no effect.')).toBe(false);
});
