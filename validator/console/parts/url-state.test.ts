import { expect, it } from 'vitest';
import { readUrlState, writeUrlState } from './url-state.ts';

const DEFAULTS = { page: 1, q: '', free: false };

it('reads values by the type of their defaults, and ignores malformed ones', () => {
  expect(readUrlState('?page=3&q=a+b&free=true&x=1', DEFAULTS)).toEqual({
    page: 3,
    q: 'a b',
    free: true,
  });
  expect(readUrlState('?page=x&free=1', DEFAULTS)).toEqual(DEFAULTS);
  expect(readUrlState('?page=', DEFAULTS)).toEqual(DEFAULTS);
});

it('writes only values that differ from their defaults, and keeps other members', () => {
  const state = { page: 2, q: '', free: true };
  expect(writeUrlState('q=old&tab=b', state, DEFAULTS)).toBe('tab=b&page=2&free=true');
  expect(readUrlState(writeUrlState('', state, DEFAULTS), DEFAULTS)).toEqual(state);
});
