import { expect, it } from 'vitest';
import { summaryOf } from './chart-summary.ts';

it('describes the last, lowest and highest value, and ignores gaps', () => {
  expect(summaryOf('GPU 0', [1, null, 30.04, 12], '%')).toBe('GPU 0: 12 % now, between 1 and 30.');
  expect(summaryOf('GPU 0', [null], '%')).toBe('GPU 0: no measurements.');
});
