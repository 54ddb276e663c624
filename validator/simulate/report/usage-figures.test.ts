import { expect, it } from 'vitest';
import { usageOf } from './usage-figures.ts';

const HOUR_MS = 3_600_000;

it('adds the charged GPU hours and their cost by model', () => {
  const time = {
    pod: 'p1',
    executor: 'a',
    fromMs: 0,
    toMs: 2 * HOUR_MS,
    isCharged: true,
    isLost: false,
    gpus: 4,
    usdPerHour: 4.8,
  };
  const used = [
    time,
    { ...time, executor: 'b', gpus: 1, usdPerHour: 2 },
    { ...time, isCharged: false, isLost: true },
    { ...time, fromMs: HOUR_MS },
  ];
  expect(usageOf(used, (executor) => (executor === 'a' ? 'A100' : 'H100'))).toEqual([
    { gpu: 'A100', gpu_hours: 12, cost_usd: expect.closeTo(14.4) },
    { gpu: 'H100', gpu_hours: 2, cost_usd: 4 },
  ]);
});
