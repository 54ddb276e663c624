import { expect, it } from 'vitest';
import { nextRequestAt } from '../../platform/retries.ts';
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
  ['charges at the threshold', {}, true],
  ['does not charge just above the threshold', { available: 11 }, false],
  ['does not charge while no pod runs', { burnPerHour: 0 }, false],
  ['charges while stopped pods wait for money', { burnPerHour: 0, awaitsMoney: true }, true],
  ['does not charge when disabled', { enabled: false }, false],
  ['does not charge without a payment method', { hasMethod: false }, false],
  ['does not charge while a charge is in flight', { status: 'charging' }, false],
  ['does not charge when suspended', { status: 'suspended' }, false],
  ['charges again after a decline', { status: 'failed' }, true],
  [
    'does not charge before the pause after a decline ends',
    { status: 'failed', notBeforeMs: NOW + 1 },
    false,
  ],
  [
    'charges as soon as the pause after a decline ends',
    { status: 'failed', notBeforeMs: NOW },
    true,
  ],
  ['charges up to the monthly limit', { monthChargedUusd: 200 }, true],
  ['does not charge beyond the monthly limit', { monthChargedUusd: 201 }, false],
  ['charges up to a thousand dollars a month if no limit is set', { monthlyLimitUusd: null }, true],
  [
    'does not charge beyond a thousand dollars a month if no limit is set',
    { monthlyLimitUusd: null, monthChargedUusd: 1e9 - 99 },
    false,
  ],
  [
    'charges a single amount above a thousand dollars',
    { ...ONE_OF_5000, monthChargedUusd: 0 },
    true,
  ],
  [
    'does not charge a single amount above a thousand dollars twice a month',
    { ...ONE_OF_5000, monthChargedUusd: 1 },
    false,
  ],
  ['does not charge in the pause after a success', PAUSED, false],
  ['charges at the end of the pause after a success', { ...PAUSED, notBeforeMs: NOW }, true],
  ['charges in the pause after a success for stopped pods', { ...PAUSED, awaitsMoney: true }, true],
  [
    'charges in the pause after a success for pods that are about to stop',
    { ...PAUSED, runsOutAtMs: NOW + 900_000 },
    true,
  ],
  [
    'does not charge in the pause after a success for pods that keep running',
    { ...PAUSED, runsOutAtMs: NOW + 900_001 },
    false,
  ],
  [
    'does not charge in the pause after a decline, even for pods that are about to stop',
    { ...DECLINED, runsOutAtMs: NOW },
    false,
  ],
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

it('repeats an unanswered charge for less than a day, and waits two weeks for a pending charge', () => {
  expect([1, 2, 3, 4, 30].map((attempts) => nextRequestAt(attempts, 0))).toEqual([
    10_000, 60_000, 600_000, 3_600_000, 3_600_000,
  ]);
  const day = 86_400_000;
  expect(isExpired({ state: 'charging', createdMs: 0 }, day - 3_600_000)).toBe(true);
  expect(isExpired({ state: 'charging', createdMs: 0 }, day - 3_600_001)).toBe(false);
  expect(isExpired({ state: 'pending', createdMs: 0 }, 14 * day - 1)).toBe(false);
  expect(isExpired({ state: 'pending', createdMs: 0 }, 14 * day)).toBe(true);
});
