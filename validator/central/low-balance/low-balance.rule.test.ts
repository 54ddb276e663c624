import { expect, it } from 'vitest';
import {
  DEFAULT_THRESHOLDS,
  judgeFunds,
  runwayMs,
  runwayText,
  TOLD_NOTHING,
} from './low-balance.rule.ts';

const USD = 1_000_000;
/** 1 dollar an hour; two hours are 120 minutes. */
const thresholds = { thresholdUusd: 5 * USD, runwayMinutes: 0 };
const idle = (available: number) => ({ available, burnPerHour: 0 });

it.each([
  [5 * USD + 1, false],
  [5 * USD, true],
  [5 * USD - 1, true],
])('counts %i micro-dollars against a threshold of 5 dollars: crossed %s', (available, crossed) => {
  expect(judgeFunds(idle(available), thresholds, TOLD_NOTHING)).toEqual({
    tell: crossed,
    told: { ofAmount: crossed, ofRunway: false },
  });
});

it.each([
  [5.5 * USD - 1, true],
  [5.5 * USD, false],
])('with %i micro-dollars after a crossing it still counts as crossed: %s', (available, still) => {
  const { tell, told } = judgeFunds(idle(available), thresholds, {
    ofAmount: true,
    ofRunway: false,
  });
  expect([tell, told.ofAmount]).toEqual([false, still]);
});

it('tells once on the way down, however often it is asked, and once more after a recovery', () => {
  let told = TOLD_NOTHING;
  const tells = [8, 5.2, 5, 4.9, 5.4, 4.8, 5.5, 5.3, 5, 4].map((usd) => {
    const judged = judgeFunds(idle(usd * USD), thresholds, told);
    told = judged.told;
    return judged.tell;
  });
  expect(tells).toEqual([false, false, true, false, false, false, false, false, true, false]);
});

it('watches runway and amount each by itself, at the exact minute', () => {
  const burnPerHour = 60 * USD;
  const low = { thresholdUusd: 0, runwayMinutes: 120 };
  const at = (minutes: number, extra = 0) => ({ available: minutes * USD + extra, burnPerHour });
  expect(judgeFunds(at(120, 17), low, TOLD_NOTHING).tell).toBe(false);
  const crossed = judgeFunds(at(120), low, TOLD_NOTHING);
  expect(crossed).toEqual({ tell: true, told: { ofAmount: false, ofRunway: true } });
  expect(judgeFunds(at(131), low, crossed.told).told.ofRunway).toBe(true);
  expect(judgeFunds(at(132), low, crossed.told).told.ofRunway).toBe(false);
  expect(judgeFunds(at(0), low, crossed.told)).toMatchObject({ tell: true });
});

it('forgets the runway of an account that spends nothing any more', () => {
  const told = { ofAmount: false, ofRunway: true };
  expect(judgeFunds(idle(9 * USD), DEFAULT_THRESHOLDS, told).told.ofRunway).toBe(false);
});

it('computes runways beyond what doubles hold, and never below zero', () => {
  const much = { available: Number.MAX_SAFE_INTEGER, burnPerHour: 1 };
  expect(runwayMs(much)).toBe(Number(BigInt(Number.MAX_SAFE_INTEGER) * 3_600_000n));
  expect(runwayMs({ available: -5, burnPerHour: 1 })).toBe(0);
});

it.each([
  [3.2, '3 h 12 min left'],
  [0.2, '12 min left'],
  [0, '0 min left'],
  [49.99, '2 d 1 h left'],
])('says %s hours as %s', (hours, text) => {
  expect(runwayText({ available: hours * USD, burnPerHour: USD })).toBe(text);
});

it('says nothing of a runway while nothing is spent', () => {
  expect(runwayText(idle(USD))).toBeNull();
});
