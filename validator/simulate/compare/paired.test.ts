import { describe, expect, it } from 'vitest';
import { comparePairs, isClear, MAX_PAIRS } from './paired.ts';

describe('paired differences', () => {
  it('has the interval of the paired t test', () => {
    // Differences 1, 2, 3, 4, 5: mean 3, standard error 0.7071, t for 4 degrees of freedom 2.776.
    const pairs = [1, 2, 3, 4, 5].map((step) => [10 * step, 11 * step] as const);
    const { meanA, meanB, mean, low, high } = comparePairs(pairs);
    expect([meanA, meanB, mean]).toEqual([30, 33, 3]);
    expect(low).toBeCloseTo(3 - 2.776 * Math.SQRT1_2, 6);
    expect(high).toBeCloseTo(3 + 2.776 * Math.SQRT1_2, 6);
  });

  it('is clear only if the interval excludes zero', () => {
    expect(
      isClear(
        comparePairs([
          [1, 2],
          [1, 2],
          [1, 2],
        ]),
      ),
    ).toBe(true);
    expect(
      isClear(
        comparePairs([
          [1, 2],
          [2, 1],
          [1, 1],
        ]),
      ),
    ).toBe(false);
  });

  it('refuses one pair, and more pairs than the table has', () => {
    expect(() => comparePairs([[1, 2]])).toThrow(RangeError);
    const many = Array.from({ length: MAX_PAIRS + 1 }, () => [1, 2] as const);
    expect(() => comparePairs(many)).toThrow(RangeError);
    expect(comparePairs(many.slice(1)).pairs).toBe(MAX_PAIRS);
  });
});
