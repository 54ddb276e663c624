/** Pure rules: paths, states, times of runs. */
import { expect, it } from 'vitest';
import { BACKUP_STATES, sourcesOf } from './operation.state.ts';
import { checkedPath, defaultPathOf } from './pod-path.ts';
import { nextRunAt } from './schedule.service.ts';

const HOUR_MS = 3_600_000;

it.each([
  ['/root', '/root'],
  ['/root/', '/root'],
  ['/root/a b/..c', '/root/a b/..c'],
  ['/home', '/home'],
  ['/opt/x', '/opt/x'],
  ['/tmpfiles', '/tmpfiles'],
])('accepts the path %s', (given, path) => {
  expect(checkedPath(given)).toBe(path);
});

it.each([
  ...['/', '', 'root', '/root/..', '/root/../etc', '/root//a', '/root/./a', '/root/a//'],
  ...['/root/a\u0007', '/tmp', '/tmp/x', '/var/tmp', '/mnt', '/mnt/x'],
  ...['/proc', '/proc/1/root', '/sys', '/sys/kernel', '/dev', '/dev/shm'],
])('rejects the path %j', (given) => {
  expect(() => checkedPath(given)).toThrow(/^The path /);
});

it('backs up the first volume of the present spec, otherwise of the template, otherwise /root', () => {
  const template_json = JSON.stringify({ volumes: ['/workspace/', '/root'] });
  expect(defaultPathOf({ spec_json: '{}', template_json })).toBe('/workspace');
  expect(defaultPathOf({ spec_json: '{"volumes":["/a"]}', template_json })).toBe('/a');
  expect(defaultPathOf({ spec_json: '{"volumes":[]}', template_json })).toBe('/root');
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
