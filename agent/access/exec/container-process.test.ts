import { expect, it } from 'vitest';
import { isInContainer, membersOfSession, type ProcFiles, countOutside } from './container-process.ts';

const OURS = 'a'.repeat(64);
const OTHER = 'b'.repeat(64);

/** pid -> session and container. */
function proc(table: Record<string, [session: number, containerId: string]>): ProcFiles {
  return {
    list: () => [...Object.keys(table), 'self', 'meminfo'],
    read(path) {
      const [pid = '', file] = path.split('/');
      const entry = table[pid];
      if (entry === undefined) throw new Error('ENOENT');
      const [session, container] = entry;
      return file === 'stat'
        ? `${pid} (sh) R) (x) S 1 ${session} ${session} 0 -1`
        : `0::/system.slice/docker-${container}.scope\n`;
    },
  };
}

it('finds the processes of one session, whatever their names, in that container only', () => {
  const files = proc({ 100: [100, OURS], 101: [100, OURS], 102: [102, OURS], 103: [100, OTHER] });
  expect(membersOfSession(files, { pid: 100, containerId: OURS })).toEqual([100, 101]);
});

it('takes a pid that is gone, or somebody else by now, for no process of the container', () => {
  const files = proc({ 1: [1, OURS], 100: [100, OTHER] });
  expect(isInContainer(files, 100, OURS)).toBe(false);
  expect(isInContainer(files, 999, OURS)).toBe(false);
  expect(isInContainer(files, 1, OURS)).toBe(false);
  expect(isInContainer(files, 100, '')).toBe(false);
  expect(isInContainer(files, 100, OTHER)).toBe(true);
});

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
