import { expect, it } from 'vitest';
import { dueWarning, firstWarningAt, minutesLeft, nextWarningAt } from './warnings.ts';

const MINUTE_MS = 60_000;
const REMOVAL = 1_000 * MINUTE_MS;
const before = (minutes: number) => REMOVAL - minutes * MINUTE_MS;

it.each([
  [before(60) - 1, null, before(60)],
  [before(60), 60, before(15)],
  [before(15) - 1, 60, before(15)],
  [before(15), 15, before(5)],
  [before(5) - 1, 15, before(5)],
  [before(5), 5, null],
  [REMOVAL - 1, 5, null],
  [REMOVAL, null, null],
  [REMOVAL + MINUTE_MS, null, null],
])('at %i warns of %s and comes again at %s', (nowMs, due, next) => {
  expect([dueWarning(REMOVAL, nowMs), nextWarningAt(REMOVAL, nowMs)]).toEqual([due, next]);
});

it('begins with an hour, however near the removal is already', () => {
  expect(firstWarningAt(REMOVAL)).toBe(before(60));
});

it('counts a begun minute', () => {
  expect(minutesLeft(REMOVAL, before(15) + 300)).toBe(15);
  expect(minutesLeft(REMOVAL, before(14))).toBe(14);
});
