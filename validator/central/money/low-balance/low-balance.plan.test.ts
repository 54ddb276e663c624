import { expect, it } from 'vitest';
import {
  checkThresholds,
  DEFAULT_THRESHOLDS,
  NEVER_NOTIFIED,
  runwayMs,
  runwayText,
} from './low-balance.plan.ts';

const USD = 1_000_000;
const HOUR_MS = 3_600_000;
const NOW_MS = 1_800_000_000_000;
/** Marks of an account that was notified only of its low amount. */
const NOTIFIED_OF_AMOUNT = { ofAmount: true, ofRunway: false };
const thresholds = { thresholdUusd: 5 * USD, runwayMinutes: 0 };
const idle = (available: number) => ({ available, burnPerHour: 0, runsOutAtMs: null });
const lasting = (ms: number) => ({ available: USD, burnPerHour: USD, runsOutAtMs: NOW_MS + ms });

it.each([
  [5 * USD + 1, false],
  [5 * USD, true],
  [5 * USD - 1, true],
])('decides whether %i micro-dollars cross a threshold of 5 dollars: %s', (available, crossed) => {
  expect(checkThresholds(idle(available), thresholds, NEVER_NOTIFIED, NOW_MS)).toEqual({
    notify: crossed,
    notified: { ofAmount: crossed, ofRunway: false },
  });
});

it.each([
  [5.5 * USD - 1, true],
  [5.5 * USD, false],
])(
  'decides whether the threshold stays crossed at %i micro-dollars after a crossing: %s',
  (available, still) => {
    const { notify, notified } = checkThresholds(
      idle(available),
      thresholds,
      NOTIFIED_OF_AMOUNT,
      NOW_MS,
    );
    expect([notify, notified.ofAmount]).toEqual([false, still]);
  },
);

it('notifies once on the way down, and once more after a recovery', () => {
  let notified = NEVER_NOTIFIED;
  const notifications = [8, 5.2, 5, 4.9, 5.4, 4.8, 5.5, 5.3, 5, 4].map((usd) => {
    const result = checkThresholds(idle(usd * USD), thresholds, notified, NOW_MS);
    notified = result.notified;
    return result.notify;
  });
  expect(notifications).toEqual([
    false,
    false,
    true,
    false,
    false,
    false,
    false,
    false,
    true,
    false,
  ]);
});

it('checks runway and amount separately, at the exact minute', () => {
  const low = { thresholdUusd: 0, runwayMinutes: 120 };
  const at = (minutes: number, extra = 0) => lasting(minutes * 60_000 + extra);
  expect(checkThresholds(at(120, 1), low, NEVER_NOTIFIED, NOW_MS).notify).toBe(false);
  const crossed = checkThresholds(at(120), low, NEVER_NOTIFIED, NOW_MS);
  expect(crossed).toEqual({ notify: true, notified: { ofAmount: false, ofRunway: true } });
  expect(checkThresholds(at(131), low, crossed.notified, NOW_MS).notified.ofRunway).toBe(true);
  expect(checkThresholds(at(132), low, crossed.notified, NOW_MS).notified.ofRunway).toBe(false);
  const nothing = { ...at(0), available: 0 };
  expect(checkThresholds(nothing, low, crossed.notified, NOW_MS)).toMatchObject({ notify: true });
});

it('resets the runway notification of an account that spends nothing', () => {
  const notified = { ofAmount: false, ofRunway: true };
  expect(
    checkThresholds(idle(9 * USD), DEFAULT_THRESHOLDS, notified, NOW_MS).notified.ofRunway,
  ).toBe(false);
});

it('computes a runway of 0 for an instant in the past', () => {
  expect(runwayMs(lasting(-5), NOW_MS)).toBe(0);
});

it.each([
  [3.2, '3 h 12 min left'],
  [0.2, '12 min left'],
  [0, '0 min left'],
  [49.99, '2 d 1 h left'],
])('formats %s hours as %s', (hours, text) => {
  expect(runwayText(lasting(hours * HOUR_MS), NOW_MS)).toBe(text);
});

it('returns no runway text while nothing is spent', () => {
  expect(runwayText(idle(USD), NOW_MS)).toBeNull();
});
