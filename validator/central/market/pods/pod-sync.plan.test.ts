import { expect, it } from 'vitest';
import { NO_PROGRESS } from '#shared/api/agent/images.ts';
import { pullMessage } from './pod-sync.plan.ts';

it.each([
  [{}, 'Fetching the image'],
  [
    { bytes_done: 3_700_000, bytes_total: 9_100_000, layers_total: 2 },
    'Fetching the image: 40 % of 10 MB, 0 of 2 layers fetched',
  ],
  [
    { bytes_done: 3_499_999_999, bytes_total: 3_500_000_000, layers_done: 1, layers_total: 7 },
    'Fetching the image: 99 % of 3.5 GB, 1 of 7 layers fetched',
  ],
  [
    { bytes_done: 5, bytes_total: 5, layers_done: 6, layers_total: 7 },
    'Unpacking the image: 6 of 7 layers fetched',
  ],
])('describes %j as: %s', (pull, message) => {
  expect(pullMessage({ ...NO_PROGRESS, ...pull })).toBe(message);
});
