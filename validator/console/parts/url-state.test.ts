import { expect, it } from 'vitest';
import { aNumber, ignoredIn, oneOf, readUrlState, writeUrlState } from './url-state.ts';

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

it('names the members that it ignores, and reads the others', () => {
  const defaults = { ...DEFAULTS, price: '', sort: 'price' };
  const checks = { price: aNumber, sort: oneOf(['price', 'age']) };
  const search = '?page=-4&price=abc&sort=name&free=1&q=a';
  expect(ignoredIn(search, defaults, checks)).toEqual([
    'page=-4 is not a whole number from 1 on',
    'free=1 is neither true nor false',
    'price=abc is not a number',
    'sort=name is none of price, age',
  ]);
  expect(readUrlState(search, defaults, checks)).toEqual({ ...defaults, q: 'a' });
  expect(ignoredIn('?page=2&price=1.5&sort=&other=x', defaults, checks)).toEqual([]);
});

it('checks a number that has few values', () => {
  const checks = { age: oneOf(['0', '60']) };
  expect(ignoredIn('?age=60', { age: 0 }, checks)).toEqual([]);
  expect(ignoredIn('?age=61', { age: 0 }, checks)).toEqual(['age=61 is none of 0, 60']);
  expect(ignoredIn('?age=-1', { age: 0 }, checks)).toEqual([
    'age=-1 is not a whole number from 0 on',
  ]);
  expect(readUrlState('?age=61', { age: 0 }, checks)).toEqual({ age: 0 });
});

it('shortens long members', () => {
  const [part] = ignoredIn(`?price=${'x'.repeat(100)}`, { price: '' }, { price: aNumber });
  expect(part).toBe(`price=${'x'.repeat(40)}… is not a number`);
});
