import { expect, it } from 'vitest';
import { leftShells, TERMINAL_MARK } from './leftovers.ts';

const POD = 'a'.repeat(64);
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

it('finds what the engine was asked to run for a terminal of ours, and nothing that was detached from it', () => {
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
