import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { countCpus } from './cpu-place.ts';
import { readNumaNodes } from './numa.ts';

it('reads the nodes in the order of their numbers', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-numa-'));
  for (const [node, list] of [
    ['node10', '4-7'],
    ['node2', '0-3\n'],
  ] as const) {
    mkdirSync(join(folder, node));
    writeFileSync(join(folder, node, 'cpulist'), list);
    writeFileSync(join(folder, node, 'meminfo'), 'Node 2 MemTotal:        1024 kB\n');
  }
  writeFileSync(join(folder, 'online'), '0-1');
  expect(await readNumaNodes(folder)).toEqual([
    { id: 2, cpus: '0-3', memoryBytes: 1_048_576 },
    { id: 10, cpus: '4-7', memoryBytes: 1_048_576 },
  ]);
  rmSync(folder, { recursive: true });
  expect(await readNumaNodes(folder)).toEqual([]);
});

it('finds every processor of this host, where the kernel has nodes', async () => {
  const nodes = await readNumaNodes();
  const count = nodes.reduce((sum, node) => sum + countCpus(node.cpus), 0);
  expect([0, cpus().length]).toContain(count);
});
