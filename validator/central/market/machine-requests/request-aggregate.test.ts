import { expect, it } from 'vitest';
import { aggregateOf, bandOf } from './request-aggregate.ts';

const USD = 1_000_000;

it.each([
  [1, USD - 1, '<$1/h'],
  [1, USD, '$1-3/h'],
  [8, 8 * USD - 1, '<$1/h'],
  [8, 8 * USD, '$1-3/h'],
  [2, 6 * USD - 1, '$1-3/h'],
  [2, 6 * USD, '$3-10/h'],
  [64, 640 * USD - 1, '$3-10/h'],
  [64, 640 * USD, '$10+/h'],
  [1, 1_000_000 * USD, '$10+/h'],
  [null, USD, 'unknown'],
  [1, null, 'unknown'],
])('puts %s GPUs for %s micro-dollars into %s', (gpu_count, budget_uusd_per_hour, band) => {
  expect(bandOf({ gpu_count, budget_uusd_per_hour })).toBe(band);
});

it('groups short and full names of a GPU type, and lists every band', () => {
  const group = { gpu_count: 1, budget_uusd_per_hour: 2 * USD };
  expect(
    aggregateOf([
      { ...group, gpu_class: 'L40S', count: 2 },
      { ...group, gpu_class: 'NVIDIA H100 80GB HBM3', count: 2 },
      { ...group, gpu_class: 'H100', gpu_count: null, count: 1 },
    ]),
  ).toEqual({
    tier: 'aggregate',
    open_requests: 5,
    by_gpu_class: [
      { gpu_class: 'H100', count: 3 },
      { gpu_class: 'L40S', count: 2 },
    ],
    by_hourly_budget_band: [
      { band: '<$1/h', count: 0 },
      { band: '$1-3/h', count: 4 },
      { band: '$3-10/h', count: 0 },
      { band: '$10+/h', count: 0 },
      { band: 'unknown', count: 1 },
    ],
  });
});
