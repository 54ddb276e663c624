import { expect, it } from 'vitest';
import {
  countOutside,
  isInContainer,
  leftShells,
  membersOfSession,
  type ProcFiles,
  TERMINAL_MARK,
  withNames,
} from './container-process.ts';

const POD = 'a'.repeat(64);
const OURS = POD;
const OTHER = 'b'.repeat(64);

/** A fake /proc: pid -> session and container. */
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

it('finds the processes of one session in its container only', () => {
  const files = proc({ 100: [100, OURS], 101: [100, OURS], 102: [102, OURS], 103: [100, OTHER] });
  expect(membersOfSession(files, { pid: 100, containerId: OURS })).toEqual([100, 101]);
});

it('does not attribute a missing or reused pid to the container', () => {
  const files = proc({ 1: [1, OURS], 100: [100, OTHER] });
  expect(isInContainer(files, 100, OURS)).toBe(false);
  expect(isInContainer(files, 999, OURS)).toBe(false);
  expect(isInContainer(files, 1, OURS)).toBe(false);
  expect(isInContainer(files, 100, '')).toBe(false);
  expect(isInContainer(files, 100, OTHER)).toBe(true);
});

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
  ['processes of the pod', [10], POD, 0],
  ['processes of another container and of the host', [10, 11, 12], POD, 2],
  ['a process that has ended', [10, 99], POD, 0],
  ['a card without lease', [12], null, null],
  ['a GPU driver that does not list processes', null, POD, null],
])('counts the compute processes outside the pod: %s', (_, pids, containerId, expected) => {
  expect(countOutside(files, { pids, containerId })).toBe(expected);
});

it('finds processes by the name of their program', () => {
  const names: Record<string, string> = { '10/comm': 'dcgm-exporter\n', '11/comm': 'python3\n' };
  const proc = {
    list: () => [],
    read: (path: string) => {
      const text = names[path];
      if (text === undefined) throw new Error('gone');
      return text;
    },
  };
  expect(withNames(proc, [10, 11, 12], ['dcgm-exporter'])).toEqual([10]);
  expect(withNames(proc, [10, 11, 12], [])).toEqual([]);
});

const FOREIGN = 'b'.repeat(64);
const US = '3f9f41a6-0001-4000-8000-000000000001';

type Process = { parent: number; container: string; executor?: string };

function leftAmong(table: Record<string, Process>) {
  const files = {
    list: () => [...Object.keys(table), 'self'],
    read(path: string) {
      const [pid = '', file] = path.split('/');
      const entry = table[pid];
      if (entry === undefined) throw new Error('ENOENT');
      if (file === 'environ') return `A=1\0${TERMINAL_MARK}=${entry.executor ?? 'nobody'}\0`;
      if (file === 'stat') return `${pid} (a b) c) S ${entry.parent} 1 1 0 -1`;
      return `0::/docker/${entry.container}\n`;
    },
  };
  return leftShells(files, [{ name: TERMINAL_MARK, value: US }], [POD]);
}

it('finds the shells that the engine started for terminals, and no processes that were detached from them', () => {
  const found = leftAmong({
    50: { parent: 1, container: 'host' },
    100: { parent: 50, container: POD, executor: US },
    101: { parent: 100, container: POD, executor: US },
    102: { parent: 200, container: POD, executor: US },
    103: { parent: 50, container: POD },
    200: { parent: 50, container: POD },
    300: { parent: 50, container: FOREIGN, executor: US },
    301: { parent: 50, container: POD, executor: 'another' },
  });
  expect(found).toEqual([{ pid: 100, containerId: POD }]);
});
