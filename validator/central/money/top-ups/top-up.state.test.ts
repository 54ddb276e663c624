import { expect, it } from 'vitest';
import { nextAskAt } from '../../platform/retries.ts';
import { afterCharge, type ChargeFacts, isExpired, shouldCharge } from './top-up.state.ts';

const NOW = 1_000_000;
const FACTS: ChargeFacts = {
  enabled: true,
  hasMethod: true,
  status: 'idle',
  notBeforeMs: 0,
  thresholdUusd: 10,
  amountUusd: 100,
  monthlyLimitUusd: 300,
  monthChargedUusd: 200,
  available: 10,
  burnPerHour: 1,
  runsOutAtMs: null,
  awaitsMoney: false,
};

const ONE_OF_5000 = { monthlyLimitUusd: null, amountUusd: 5e9 };
const PAUSED = { notBeforeMs: NOW + 1 };
const DECLINED = { ...PAUSED, status: 'failed' } as const;

it.each<[string, Partial<ChargeFacts>, boolean]>([
  ['at the threshold', {}, true],
  ['just above it', { available: 11 }, false],
  ['with nothing running', { burnPerHour: 0 }, false],
  ['with pods that stand still for want of money', { burnPerHour: 0, awaitsMoney: true }, true],
  ['when switched off', { enabled: false }, false],
  ['without a method', { hasMethod: false }, false],
  ['while a charge is under way', { status: 'charging' }, false],
  ['when suspended', { status: 'suspended' }, false],
  ['after a decline', { status: 'failed' }, true],
  ['too soon after a decline', { status: 'failed', notBeforeMs: NOW + 1 }, false],
  ['as soon as the pause is over', { status: 'failed', notBeforeMs: NOW }, true],
  ['up to the monthly limit', { monthChargedUusd: 200 }, true],
  ['beyond the monthly limit', { monthChargedUusd: 201 }, false],
  ['where none is named, up to a thousand dollars', { monthlyLimitUusd: null }, true],
  ['beyond them', { monthlyLimitUusd: null, monthChargedUusd: 1e9 - 99 }, false],
  ['for more at once', { ...ONE_OF_5000, monthChargedUusd: 0 }, true],
  ['for more, twice', { ...ONE_OF_5000, monthChargedUusd: 1 }, false],
  ['too soon after a success', PAUSED, false],
  ['as soon as that pause is over', { ...PAUSED, notBeforeMs: NOW }, true],
  ['in it, with pods that stand still', { ...PAUSED, awaitsMoney: true }, true],
  ['in it, with pods about to stop', { ...PAUSED, runsOutAtMs: NOW + 900_000 }, true],
  ['in it, with pods that run on', { ...PAUSED, runsOutAtMs: NOW + 900_001 }, false],
  ['after a decline, with pods about to stop', { ...DECLINED, runsOutAtMs: NOW }, false],
])('%s', (_, change, expected) => {
  expect(shouldCharge({ ...FACTS, ...change }, NOW)).toBe(expected);
});

it('waits longer after each decline and suspends after the third', () => {
  const first = afterCharge('declined', 0, NOW);
  expect(first).toEqual({ status: 'failed', declines: 1, not_before: NOW + 300_000 });
  expect(afterCharge('declined', 1, NOW)).toEqual({
    status: 'failed',
    declines: 2,
    not_before: NOW + 3_600_000,
  });
  expect(afterCharge('declined', 2, NOW)).toMatchObject({ status: 'suspended', declines: 3 });
  expect(afterCharge('succeeded', 2, NOW)).toEqual({
    status: 'idle',
    declines: 0,
    not_before: NOW + 600_000,
  });
  expect(afterCharge('unanswered', 2, NOW)).toMatchObject({ status: 'failed', declines: 2 });
});

it('repeats an unanswered charge for less than a day, and waits two weeks for a pending one', () => {
  expect([1, 2, 3, 4, 30].map((attempts) => nextAskAt(attempts, 0))).toEqual([
    10_000, 60_000, 600_000, 3_600_000, 3_600_000,
  ]);
  const day = 86_400_000;
  expect(isExpired({ state: 'charging', createdMs: 0 }, day - 3_600_000)).toBe(true);
  expect(isExpired({ state: 'charging', createdMs: 0 }, day - 3_600_001)).toBe(false);
  expect(isExpired({ state: 'pending', createdMs: 0 }, 14 * day - 1)).toBe(false);
  expect(isExpired({ state: 'pending', createdMs: 0 }, 14 * day)).toBe(true);
});
