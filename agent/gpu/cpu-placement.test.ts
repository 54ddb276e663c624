import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { EIGHT_NVSWITCH, OLD_DRIVER } from '../../test/fixtures/nvidia-topology.ts';
import { countCpus, cpuPlacement, type PlacementRequest, readNumaNodes } from './cpu-placement.ts';
import { parseTopology } from './nvidia/topology.ts';

const GIB = 2 ** 30;
const cards = Array.from({ length: 8 }, (_, index) => ({ index, uuid: `GPU-${index}` }));
const topology = parseTopology(EIGHT_NVSWITCH, cards);
const nodes = [
  { id: 0, cpus: '0-31,64-95', memoryBytes: 512 * GIB },
  { id: 1, cpus: '32-63,96-127', memoryBytes: 512 * GIB },
];
const requestWith = (change: Partial<PlacementRequest>): PlacementRequest => ({
  cardUuids: ['GPU-4', 'GPU-5'],
  cpuCores: 32,
  memoryBytes: 100 * GIB,
  ...change,
});

it('binds a pod to the NUMA node of its cards', () => {
  expect(cpuPlacement(requestWith({}), topology, nodes)).toEqual({
    cpus: '32-63,96-127',
    memoryNodes: '1',
  });
  expect(cpuPlacement(requestWith({ cardUuids: ['GPU-0'] }), topology, nodes)).toEqual({
    cpus: '0-31,64-95',
    memoryNodes: '0',
  });
});

it.each<[string, ReturnType<typeof cpuPlacement>]>([
  [
    'cards on two nodes',
    cpuPlacement(requestWith({ cardUuids: ['GPU-3', 'GPU-4'] }), topology, nodes),
  ],
  ['an unknown card', cpuPlacement(requestWith({ cardUuids: ['GPU-9'] }), topology, nodes)],
  ['no cards', cpuPlacement(requestWith({ cardUuids: [] }), topology, nodes)],
  ['no topology', cpuPlacement(requestWith({}), null, nodes)],
  [
    'a driver that names no node',
    cpuPlacement(requestWith({ cardUuids: ['GPU-0'] }), parseTopology(OLD_DRIVER, cards), nodes),
  ],
  [
    'a host with one node',
    cpuPlacement(requestWith({ cardUuids: ['GPU-0'] }), topology, nodes.slice(0, 1)),
  ],
  ['more cores than the node has', cpuPlacement(requestWith({ cpuCores: 65 }), topology, nodes)],
])('does not bind a pod with %s', (_, place) => {
  expect(place).toBeNull();
});

it('does not bind the memory if the node has too little', () => {
  const place = cpuPlacement(requestWith({ memoryBytes: 500 * GIB }), topology, nodes);
  expect(place).toEqual({ cpus: '32-63,96-127', memoryNodes: null });
});

it.each([
  ['0-3,8', 5],
  ['7', 1],
  ['', 0],
  ['all', 0],
])('counts %j as %i', (list, count) => {
  expect(countCpus(list)).toBe(count);
});

it('reads the nodes in numeric order', async () => {
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

it('finds every processor of this host if the kernel lists nodes', async () => {
  const nodes = await readNumaNodes();
  const count = nodes.reduce((sum, node) => sum + countCpus(node.cpus), 0);
  expect([0, cpus().length]).toContain(count);
});
