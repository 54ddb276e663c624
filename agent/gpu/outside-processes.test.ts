import { expect, it } from 'vitest';
import { countOutside } from './outside-processes.ts';

const POD = 'a'.repeat(64);
const GROUPS: Record<string, string> = {
  '10/cgroup': `0::/system.slice/docker-${POD}.scope\n`,
  '11/cgroup': `0::/system.slice/docker-${'b'.repeat(64)}.scope\n`,
  '12/cgroup': '0::/user.slice/session-1.scope\n',
};
const files = {
  list: () => [],
  read: (path: string) => {
    const text = GROUPS[path];
    if (text === undefined) throw new Error('gone');
    return text;
  },
};

it.each<[string, readonly number[] | null, string | null, number | null]>([
  ['the pod’s own', [10], POD, 0],
  ['those of another container and of the host', [10, 11, 12], POD, 2],
  ['one that has ended', [10, 99], POD, 0],
  ['a card that nobody holds', [12], null, null],
  ['a driver that does not tell', null, POD, null],
])('counts %s', (_, pids, containerId, expected) => {
  expect(countOutside(files, { pids, containerId })).toBe(expected);
});
