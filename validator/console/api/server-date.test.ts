import { expect, it } from 'vitest';
import { offsetOf } from './server-date.ts';

const DATE = 'Sat, 28 Nov 2026 12:00:00 GMT';
const MS = Date.UTC(2026, 10, 28, 12);

it.each([
  [DATE, MS - 150_000, 150_000],
  [DATE, MS + 3_600_000, -3_600_000],
  [DATE, MS + 4_000, 0],
  ['no date', MS, 0],
  [null, MS, 0],
])('of %j at %d is %d', (date, browserMs, offsetMs) => {
  expect(offsetOf(date, browserMs)).toBe(offsetMs);
});
