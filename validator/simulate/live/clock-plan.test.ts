import { expect, it } from 'vitest';
import { afterStep, type ClockMode, endOfStep, noteOf, PAUSED, statusOf } from './clock-plan.ts';

const RUNNING: ClockMode = { speed: 60, targetMs: null };
const ADVANCING: ClockMode = { speed: null, targetMs: 9_000 };
const moment = { nowMs: 1_000, elapsedMs: 20, isReachable: true };

it.each([
  ['stands while it is paused', PAUSED, moment, 1_000],
  ['passes at its speed', RUNNING, moment, 2_200],
  ['catches up with one second at most', RUNNING, { ...moment, elapsedMs: 5_000 }, 61_000],
  ['runs to the end of an advance', ADVANCING, moment, 9_000],
  ['prefers the advance to its speed', { ...ADVANCING, speed: 60 }, moment, 9_000],
  ['never goes back', ADVANCING, { ...moment, nowMs: 9_500 }, 9_500],
  [
    'runs while the central API is down, although it is paused',
    PAUSED,
    { ...moment, isReachable: false },
    3_601_000,
  ],
])('%s', (_, mode, at, endMs) => {
  expect(endOfStep(mode, at)).toBe(endMs);
});

it('ends an advance at its target, and then continues as before', () => {
  expect(afterStep({ speed: 60, targetMs: 9_000 }, 8_999).targetMs).toBe(9_000);
  expect(afterStep({ speed: 60, targetMs: 9_000 }, 9_000)).toEqual(RUNNING);
  expect(afterStep(PAUSED, 9_000)).toEqual(PAUSED);
});

it('explains a jump of the wall clock during an advance', () => {
  expect(noteOf(0)).toBe(null);
  expect(noteOf(-600_000)).toMatch(/set the wall clock back by 10 min\. .* shows 10 min less/);
  expect(noteOf(90_000)).toMatch(/forward by 90 s\. .* 90 s more/);
});

it('has a status', () => {
  const up = { isReachable: true };
  expect(statusOf(PAUSED, up)).toBe('paused');
  expect(statusOf(RUNNING, up)).toBe('running');
  expect(statusOf({ ...RUNNING, targetMs: 1 }, up)).toBe('advancing');
  expect(statusOf(PAUSED, { isReachable: false })).toBe('advancing');
});
