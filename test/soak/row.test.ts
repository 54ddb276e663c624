import { expect, it } from 'vitest';
import { ceiling, rise } from './row.ts';

it('finds how fast a noisy figure rises', () => {
  const noisy = Array.from({ length: 60 }, (_, n) => ({
    atMs: n * 10_000,
    value: 100 + n / 60 + (n % 2 === 0 ? 1 : -1),
  }));
  expect(rise(noisy, 600_000)).toBeCloseTo(1, 0);
  const peaks = noisy.map((sample, n) => (n === 50 ? { ...sample, value: 160 } : sample));
  expect(rise(peaks, 600_000)).toBeCloseTo(1, 0);
  expect(
    rise(
      [0, 1, 2].map((n) => ({ atMs: n, value: 7 })),
      1_000,
    ),
  ).toBe(0);
});

it('judges by a ceiling', () => {
  expect(ceiling('n', 10, 'MB', 10).holds).toBe(true);
  expect(ceiling('n', 10.1, 'MB', 10).holds).toBe(false);
});
