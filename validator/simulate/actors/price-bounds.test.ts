import { expect, it } from 'vitest';
import { boundedPrice, boundsOf } from './price-bounds.ts';

it('keeps prices between 30 and 200 percent of the first, in cents', () => {
  expect(boundedPrice(0.9, 1)).toBe(0.9);
  expect(boundedPrice(0.1, 1)).toBe(0.3);
  expect(boundedPrice(5, 1)).toBe(2);
  expect(boundsOf(0.32)).toEqual({ floor: 0.1, ceiling: 0.64 });
});
