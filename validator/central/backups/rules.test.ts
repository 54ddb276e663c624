/** Pure rules: paths, states, times of runs. */
import { expect, it } from 'vitest';
import { BACKUP_STATES, sourcesOf } from './operation.state.ts';
import { checkedPath, volumesOf } from './pod-path.ts';
import { nextRunAt } from './schedule.service.ts';

const HOUR_MS = 3_600_000;

it.each([
  ['/root', '/root'],
  ['/root/', '/root'],
  ['/root/a b/..c', '/root/a b/..c'],
  ['/data/sets/x', '/data/sets/x'],
])('accepts the path %s', (given, path) => {
  expect(checkedPath(given, ['/root', '/data/sets'])).toBe(path);
});

it.each([
  '/',
  '',
  'root',
  '/rootless',
  '/data',
  '/root/..',
  '/root/../etc',
  '/root//a',
  '/root/./a',
  '/root/a//',
  '/root/a\u0007',
  '/tmp',
  '/tmp/x',
  '/var/tmp',
  '/mnt',
  '/mnt/x',
])('rejects the path %j', (given) => {
  const volumes = ['/root', '/data/sets', '/tmp', '/var/tmp', '/mnt'];
  expect(() => checkedPath(given, volumes)).toThrow(/^The path /);
});

it('returns the volumes of the present spec, or else of the template', () => {
  const template_json = JSON.stringify({ volumes: ['/workspace/'] });
  expect(volumesOf({ spec_json: '{}', template_json })).toEqual(['/workspace']);
  expect(volumesOf({ spec_json: '{"volumes":["/a"]}', template_json })).toEqual(['/a']);
  expect(volumesOf({ spec_json: '{"volumes":[]}', template_json })).toEqual([]);
});

it('has no transition out of a final state except deletion', () => {
  const moves = BACKUP_STATES.map((to) => [to, sourcesOf(to)]);
  expect(Object.fromEntries(moves)).toEqual({
    PENDING: [],
    IN_PROGRESS: ['PENDING'],
    COMPLETED: ['IN_PROGRESS'],
    FAILED: ['PENDING', 'IN_PROGRESS'],
    CANCELLED: ['PENDING', 'IN_PROGRESS'],
    SKIPPED: [],
    EXPIRED: ['COMPLETED'],
    DELETED: ['COMPLETED', 'FAILED', 'CANCELLED', 'SKIPPED', 'EXPIRED'],
  });
});

it('spreads pods over the interval at fixed offsets', () => {
  const nowMs = 1_800_000_000_000;
  const pods = Array.from({ length: 200 }, (_, index) => `pod ${index}`);
  const runs = pods.map((pod) => nextRunAt(pod, 4, nowMs) - nowMs);
  expect(Math.min(...runs)).toBeGreaterThan(0);
  expect(Math.max(...runs)).toBeLessThanOrEqual(4 * HOUR_MS);
  for (const quarter of [0, 1, 2, 3]) {
    const here = runs.filter((ms) => Math.floor(ms / HOUR_MS) === quarter);
    expect(here.length).toBeGreaterThan(20);
  }
  const first = nextRunAt('pod', 4, nowMs);
  expect(nextRunAt('pod', 4, first - 1)).toBe(first);
  expect(nextRunAt('pod', 4, first)).toBe(first + 4 * HOUR_MS);
  expect(nextRunAt('pod', 4, first + 9 * HOUR_MS)).toBe(first + 12 * HOUR_MS);
});
