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
])('at %i, the warning %s is due, and the next warning is at %s', (nowMs, due, next) => {
  expect([dueWarning(REMOVAL, nowMs), nextWarningAt(REMOVAL, nowMs)]).toEqual([due, next]);
});

it('the first warning is one hour before the event, even if that time has passed', () => {
  expect(firstWarningAt(REMOVAL)).toBe(before(60));
});

it('rounds the minutes until the event up', () => {
  expect(minutesLeft(REMOVAL, before(15) + 300)).toBe(15);
  expect(minutesLeft(REMOVAL, before(14))).toBe(14);
});
