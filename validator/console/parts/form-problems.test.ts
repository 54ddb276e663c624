import { expect, it } from 'vitest';
import { failureFrom } from '../api/failure.ts';
import { assignedTo, otherProblems, problemsOf } from './form-problems.ts';

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
  expect(problemsOf(failure, 'email')).toEqual(['is not an address']);
  expect(problemsOf(failure, 'ports')).toEqual(['is too large']);
  expect(problemsOf(failure, 'name')).toEqual([]);
  expect(problemsOf(null, 'email')).toEqual([]);
});

it('returns the problems without a field in the form', () => {
  expect(otherProblems(failure, ['email', 'ports']).map(({ field }) => field)).toEqual([
    'query.page',
  ]);
});

it('assigns the problems of members to fields with other names', () => {
  const assigned = assignedTo({ email: 'address' }, failure);
  expect(problemsOf(assigned, 'address')).toEqual(['is not an address']);
  expect(problemsOf(assigned, 'ports')).toEqual(['is too large']);
});
