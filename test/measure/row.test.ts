import { expect, it } from 'vitest';
import { figureAtMost, growth, median, ratioAtMost, valueAtMost } from './row.ts';

it('the median is the middle value, or the mean of the two middle values', () => {
  expect(median([3, 1, 2])).toBe(2);
  expect(median([4, 1, 2, 3])).toBe(2.5);
});

it('a row compares its ratio or value with its limit', () => {
  const measured = { ours: 11, reference: 10 };
  expect(ratioAtMost('n', 'ms', 'x', measured, 1.1)).toMatchObject({ ratio: 1.1, holds: true });
  expect(ratioAtMost('n', 'ms', 'x', { ours: 12, reference: 10 }, 1.1).holds).toBe(false);
  expect(valueAtMost('n', 'MB', 'x', measured, 10).holds).toBe(false);
});

it('the growth of noisy values is measured', () => {
  const noisy = Array.from({ length: 60 }, (_, n) => ({
    atMs: n * 10_000,
    value: 100 + n / 60 + (n % 2 === 0 ? 1 : -1),
  }));
  expect(growth(noisy, 600_000)).toBeCloseTo(1, 0);
  const peaks = noisy.map((sample, n) => (n === 50 ? { ...sample, value: 160 } : sample));
  expect(growth(peaks, 600_000)).toBeCloseTo(1, 0);
  expect(
    growth(
      [0, 1, 2].map((n) => ({ atMs: n, value: 7 })),
      1_000,
    ),
  ).toBe(0);
});

it('a row without a reference compares its value with its limit', () => {
  expect(figureAtMost('n', 10, 'MB', 10).holds).toBe(true);
  expect(figureAtMost('n', 10.1, 'MB', 10).holds).toBe(false);
});
