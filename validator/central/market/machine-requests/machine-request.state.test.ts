import { expect, it } from 'vitest';
import { MACHINE_REQUEST_STATES, sourcesOf } from './machine-request.state.ts';

it('lets a pending request end, once', () => {
  const moves = MACHINE_REQUEST_STATES.map((to) => [to, sourcesOf(to)]);
  expect(Object.fromEntries(moves)).toEqual({
    pending: [],
    fulfilled: ['pending'],
    cancelled: ['pending'],
  });
});
