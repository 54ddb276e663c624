import { expect, it } from 'vitest';
import { offsetOf } from './server-date.ts';

const MS = 1_800_000_000_000;

it.each([
  [MS, MS - 150_000, 150_000],
  [MS, MS + 3_600_000, -3_600_000],
  [MS, MS + 4_000, 0],
  [null, MS, 0],
])('of %j at %d is %d', (serverMs, browserMs, offsetMs) => {
  expect(offsetOf(serverMs, browserMs)).toBe(offsetMs);
});
