import { expect, it } from 'vitest';
import { MACHINE_REQUEST_STATES, sourcesOf } from './machine-request.state.ts';

it('permits one transition, from pending to a final state', () => {
  const transitions = MACHINE_REQUEST_STATES.map((to) => [to, sourcesOf(to)]);
  expect(Object.fromEntries(transitions)).toEqual({
    pending: [],
    fulfilled: ['pending'],
    cancelled: ['pending'],
  });
});
