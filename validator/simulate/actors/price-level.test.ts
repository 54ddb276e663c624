/** Tests prices relative to those at the start, and the reaction of demand to them. */
import { expect, it } from 'vitest';
import { createPriceLevel, pauseFactor } from './price-level.ts';

it('averages the prices of the hosts with a GPU, and of all hosts', () => {
  const level = createPriceLevel();
  expect(level.of('a')).toBe(1);
  level.add('a');
  level.add('a');
  level.add('b');
  level.change('a', -0.5);
  expect(level.of('a')).toBe(0.75);
  expect(level.of('b')).toBe(1);
  expect(level.of(undefined)).toBeCloseTo(2.5 / 3);
});

it('halves the number of jobs at twice the price with an elasticity of 1', () => {
  expect(pauseFactor(2, 1)).toBe(2);
  expect(pauseFactor(0.5, 1)).toBe(0.5);
  expect(pauseFactor(2, 0)).toBe(1);
});
