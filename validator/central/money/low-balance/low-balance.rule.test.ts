import { expect, it } from 'vitest';
import {
  DEFAULT_THRESHOLDS,
  judgeFunds,
  runwayMs,
  runwayText,
  TOLD_NOTHING,
} from './low-balance.rule.ts';

const USD = 1_000_000;
const HOUR_MS = 3_600_000;
const NOW_MS = 1_800_000_000_000;
/** 1 dollar an hour; two hours are 120 minutes. */
const TOLD_AMOUNT = { ofAmount: true, ofRunway: false };
const thresholds = { thresholdUusd: 5 * USD, runwayMinutes: 0 };
const idle = (available: number) => ({ available, burnPerHour: 0, runsOutAtMs: null });
const lasting = (ms: number) => ({ available: USD, burnPerHour: USD, runsOutAtMs: NOW_MS + ms });

it.each([
  [5 * USD + 1, false],
  [5 * USD, true],
  [5 * USD - 1, true],
])('counts %i micro-dollars against a threshold of 5 dollars: crossed %s', (available, crossed) => {
  expect(judgeFunds(idle(available), thresholds, TOLD_NOTHING, NOW_MS)).toEqual({
    tell: crossed,
    told: { ofAmount: crossed, ofRunway: false },
  });
});

it.each([
  [5.5 * USD - 1, true],
  [5.5 * USD, false],
])('with %i micro-dollars after a crossing it still counts as crossed: %s', (available, still) => {
  const { tell, told } = judgeFunds(idle(available), thresholds, TOLD_AMOUNT, NOW_MS);
  expect([tell, told.ofAmount]).toEqual([false, still]);
});

it('tells once on the way down, however often it is asked, and once more after a recovery', () => {
  let told = TOLD_NOTHING;
  const tells = [8, 5.2, 5, 4.9, 5.4, 4.8, 5.5, 5.3, 5, 4].map((usd) => {
    const judged = judgeFunds(idle(usd * USD), thresholds, told, NOW_MS);
    told = judged.told;
    return judged.tell;
  });
  expect(tells).toEqual([false, false, true, false, false, false, false, false, true, false]);
});

it('watches runway and amount each by itself, at the exact minute', () => {
  const low = { thresholdUusd: 0, runwayMinutes: 120 };
  const at = (minutes: number, extra = 0) => lasting(minutes * 60_000 + extra);
  expect(judgeFunds(at(120, 1), low, TOLD_NOTHING, NOW_MS).tell).toBe(false);
  const crossed = judgeFunds(at(120), low, TOLD_NOTHING, NOW_MS);
  expect(crossed).toEqual({ tell: true, told: { ofAmount: false, ofRunway: true } });
  expect(judgeFunds(at(131), low, crossed.told, NOW_MS).told.ofRunway).toBe(true);
  expect(judgeFunds(at(132), low, crossed.told, NOW_MS).told.ofRunway).toBe(false);
  const nothing = { ...at(0), available: 0 };
  expect(judgeFunds(nothing, low, crossed.told, NOW_MS)).toMatchObject({ tell: true });
});

it('forgets the runway of an account that spends nothing any more', () => {
  const told = { ofAmount: false, ofRunway: true };
  expect(judgeFunds(idle(9 * USD), DEFAULT_THRESHOLDS, told, NOW_MS).told.ofRunway).toBe(false);
});

it('is never below zero', () => {
  expect(runwayMs(lasting(-5), NOW_MS)).toBe(0);
});

it.each([
  [3.2, '3 h 12 min left'],
  [0.2, '12 min left'],
  [0, '0 min left'],
  [49.99, '2 d 1 h left'],
])('says %s hours as %s', (hours, text) => {
  expect(runwayText(lasting(hours * HOUR_MS), NOW_MS)).toBe(text);
});

it('says nothing of a runway while nothing is spent', () => {
  expect(runwayText(idle(USD), NOW_MS)).toBeNull();
});
