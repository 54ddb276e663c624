import { expect, it } from 'vitest';
import { createLatestEvents } from './latest-events.ts';

it('retains the newest hundred events, newest first, without routine', () => {
  const latest = createLatestEvents();
  latest.record({ kind: 'seen', pod: 'a' }, 1);
  latest.record({ kind: 'validator-executors', status: 200 }, 2);
  latest.record({ kind: 'validator-executor-health-check', verdict: 'verified' }, 3);
  latest.record({ kind: 'validator-executor-health-check', verdict: 'failed' }, 4);
  latest.record({ kind: 'rented', pod: 'a' }, 5);
  expect(latest.list().map(({ number, atMs, event }) => [number, atMs, event.kind])).toEqual([
    [5, 5, 'rented'],
    [4, 4, 'validator-executor-health-check'],
  ]);
  for (let atMs = 6; atMs < 200; atMs += 1) latest.record({ kind: 'price' }, atMs);
  expect(latest.list()).toHaveLength(100);
  expect(latest.list()[0]?.atMs).toBe(199);
});
