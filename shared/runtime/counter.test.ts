import { expect, it } from 'vitest';
import { createCounter } from './counter.ts';

it('holds to both bounds, and gives room back once only', () => {
  const counter = createCounter(2, 3);
  expect([counter.take('a'), counter.take('a'), counter.take('a')]).toEqual([true, true, false]);
  expect([counter.take('b'), counter.take('c')]).toEqual([true, false]);
  counter.release('c');
  expect(counter.take('c')).toBe(false);
  counter.release('a');
  expect([counter.take('c'), counter.take('a')]).toEqual([true, false]);
});
