import { expect, it } from 'vitest';
import { countByHour } from './hourly-counts.ts';

const HOUR_MS = 3_600_000;

it('counts rentals, refusals and interruptions in the hour before each sample', () => {
  const sample = { hosts: 1, gpus: 2, verified_gpus: 2, rented_gpus: 1, free_gpus: 1 };
  const { regions, requests } = countByHour({
    regions: [1, 2].flatMap((at) => [
      { at_hours: at, region: 'eu', ...sample },
      { at_hours: at, region: 'us', ...sample },
    ]),
    counts: {
      rented: [
        { atMs: 0, executor: 'a' },
        { atMs: HOUR_MS, executor: 'a' },
        { atMs: HOUR_MS + 1, executor: 'b' },
      ],
      refusedMs: [1.5 * HOUR_MS],
      interruptions: [{ at_ms: 2 * HOUR_MS, status: 'BROKEN', reason: '', executor: 'a' }],
    },
    regionOf: (executor) => (executor === 'a' ? 'eu' : 'us'),
    hoursAt: (ms) => ms / HOUR_MS,
  });
  expect(regions.map(({ accepted, interruptions }) => [accepted, interruptions])).toEqual([
    [2, 0],
    [0, 0],
    [0, 1],
    [1, 0],
  ]);
  expect(requests).toEqual([
    { at_hours: 1, requested: 2, refused: 0 },
    { at_hours: 2, requested: 2, refused: 1 },
  ]);
});
