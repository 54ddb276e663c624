import { expect, it } from 'vitest';
import { ceilingRow, median, ratioRow } from './row.ts';

it('takes the middle', () => {
  expect(median([3, 1, 2])).toBe(2);
  expect(median([4, 1, 2, 3])).toBe(2.5);
});

it('judges by ratio or by ceiling', () => {
  const measured = { ours: 11, reference: 10 };
  expect(ratioRow('n', 'ms', 'x', measured, 1.1)).toMatchObject({ ratio: 1.1, holds: true });
  expect(ratioRow('n', 'ms', 'x', { ours: 12, reference: 10 }, 1.1).holds).toBe(false);
  expect(ceilingRow('n', 'MB', 'x', measured, 10).holds).toBe(false);
});
