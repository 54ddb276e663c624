import { expect, it } from 'vitest';
import { failureFrom } from '../api/failure.ts';
import { otherProblems, problemOf } from './form-problems.ts';

const failure = failureFrom(
  422,
  {
    code: 'validation_failed',
    detail: 'A field failed',
    hint: 'Change it.',
    validation_errors: [
      { field: 'body.email', message: 'is not an address' },
      { field: 'body.ports[2]', message: 'is too large' },
      { field: 'query.page', message: 'is not a number' },
    ],
  },
  'r1',
);

it('finds the problem of a field, also in its members', () => {
  expect(problemOf(failure, 'email')).toBe('is not an address');
  expect(problemOf(failure, 'ports')).toBe('is too large');
  expect(problemOf(failure, 'name')).toBeNull();
  expect(problemOf(null, 'email')).toBeNull();
});

it('returns the problems without a field in the form', () => {
  expect(otherProblems(failure, ['email', 'ports']).map(({ field }) => field)).toEqual([
    'query.page',
  ]);
});
