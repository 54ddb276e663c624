import { expect, it } from 'vitest';
import { costMicroCeil, formatUsdCeil, formatUsdFloor, microToUsd, usdToMicro } from './money.ts';

it.each([
  [0, 0],
  [0.1, 100_000],
  [0.1 + 0.2, 300_000],
  [1.005, 1_005_000],
  [0.000001, 1],
  [-2.5, -2_500_000],
])('converts %f USD to %i micro-dollars', (usd, micro) => {
  expect(usdToMicro(usd)).toBe(micro);
});

it('converts micro-dollars to USD and back', () => {
  for (let micro = 0; micro < 2_000_000; micro += 7_919) {
    expect(usdToMicro(microToUsd(micro))).toBe(micro);
  }
});

it('rejects unsafe amounts', () => {
  for (const usd of [Number.NaN, Number.POSITIVE_INFINITY, 1e10]) {
    expect(() => usdToMicro(usd)).toThrow(RangeError);
  }
});

it('rounds required amounts up and balances down', () => {
  expect(formatUsdCeil(1_500_000)).toBe('$1.50');
  expect(formatUsdCeil(1_500_001)).toBe('$1.51');
  expect(formatUsdFloor(1_509_999)).toBe('$1.50');
  expect(formatUsdFloor(0)).toBe('$0.00');
});

it('computes costs exactly where doubles do not', () => {
  expect(costMicroCeil(2_500_000, 8, 3_600_000)).toBe(20_000_000);
  expect(costMicroCeil(1, 1, 1)).toBe(1);
  expect(costMicroCeil(2_500_000, 8, 0)).toBe(0);
  const [rate, count, durationMs] = [9_999_999, 64, 720 * 3_600_000 - 1];
  const exact = (BigInt(rate) * BigInt(count) * BigInt(durationMs)) / 3_600_000n + 1n;
  expect(costMicroCeil(rate, count, durationMs)).toBe(Number(exact));
});
