import { expect, it } from 'vitest';
import { budgetReachedAt, DAY_MS, NOTHING_SPENT } from './key-budget.plan.ts';
import type { Burning } from './runway.ts';

const NOON = 20_000 * DAY_MS + DAY_MS / 2;
const MIDNIGHT = NOON + DAY_MS / 2;

/** A pod that began now and costs one micro-dollar per millisecond. */
const pod: Burning = {
  closed: { uusd: 0, rest: 0 },
  rate: { priceUusdPerGpuHour: 3_600_000, gpus: 1 },
  sinceMs: NOON,
  chargedUusd: 0,
  changedMs: 0,
};
const none = { dailyUusd: null, totalUusd: null };

it.each([
  ['no limit', none, NOTHING_SPENT, null],
  ['the total budget', { ...none, totalUusd: 500 }, { todayUusd: 0, totalUusd: 200 }, NOON + 300],
  [
    'a total budget that is used up',
    { ...none, totalUusd: 5 },
    { todayUusd: 0, totalUusd: 9 },
    NOON,
  ],
  [
    'the daily budget today',
    { ...none, dailyUusd: 500 },
    { todayUusd: 100, totalUusd: 0 },
    NOON + 400,
  ],
  ['the smaller of both budgets', { dailyUusd: 500, totalUusd: 50 }, NOTHING_SPENT, NOON + 50],
  [
    'the daily budget of tomorrow',
    { ...none, dailyUusd: DAY_MS / 2 + 7 },
    NOTHING_SPENT,
    MIDNIGHT + DAY_MS / 2 + 7,
  ],
  [
    'a daily budget that is used up at midnight',
    { ...none, dailyUusd: DAY_MS / 2 },
    NOTHING_SPENT,
    MIDNIGHT + DAY_MS / 2,
  ],
  ['a daily budget that covers every day', { ...none, dailyUusd: DAY_MS }, NOTHING_SPENT, null],
  [
    'a daily budget while use of yesterday is not charged yet',
    { ...none, dailyUusd: 500 },
    { todayUusd: -100, totalUusd: 0 },
    NOON + 600,
  ],
])('computes the end of %s', (_, limits, spent, expected) => {
  expect(budgetReachedAt(limits, spent, [pod], NOON)).toBe(expected);
});

it('never ends the budget of a key without running pods', () => {
  expect(budgetReachedAt({ dailyUusd: 0, totalUusd: 0 }, NOTHING_SPENT, [], NOON)).toBeNull();
});
