import { expect, it } from 'vitest';
import { GpuTopology } from '#shared/api/agent/inventory.ts';
import {
  EIGHT_NVSWITCH,
  EIGHT_PCIE,
  OLD_DRIVER,
  ONE_H100,
  TWO_PAIRS,
} from '../../../test/fixtures/nvidia-topology.ts';
import { parseTopology } from './topology.ts';

const cards = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ index, uuid: `GPU-${index}` }));
const read = (text: string, count: number) => GpuTopology.parse(parseTopology(text, cards(count)));

it('parses the matrix of a single card', () => {
  expect(read(ONE_H100, 1).gpus).toEqual([
    { uuid: 'GPU-0', numa_node: 0, cpus: '0-19', links: ['X'] },
  ]);
});

it('parses eight cards beside network cards and legends', () => {
  const { gpus } = read(EIGHT_NVSWITCH, 8);
  expect(gpus.map((gpu) => gpu.numa_node)).toEqual([0, 0, 0, 0, 1, 1, 1, 1]);
  expect(gpus[5]).toMatchObject({ cpus: '32-63', uuid: 'GPU-5' });
  expect(gpus[5]?.links).toEqual(['NV18', 'NV18', 'NV18', 'NV18', 'NV18', 'X', 'NV18', 'NV18']);
});

it('parses PCIe links and NVLink pairs', () => {
  expect(read(EIGHT_PCIE, 8).gpus[2]?.links).toEqual([
    ...['NODE', 'NODE', 'X', 'PIX', 'SYS', 'SYS', 'SYS', 'SYS'],
  ]);
  expect(read(TWO_PAIRS, 4).gpus[3]?.links).toEqual(['SYS', 'SYS', 'NV4', 'X']);
});

it('parses the matrix of an old driver without NUMA columns', () => {
  expect(read(OLD_DRIVER, 2).gpus).toEqual([
    { uuid: 'GPU-0', numa_node: null, cpus: '0-15', links: ['X', 'NV1'] },
    { uuid: 'GPU-1', numa_node: null, cpus: '0-15', links: ['NV1', 'X'] },
  ]);
});

it('omits cards that are not in the matrix, and matches by index', () => {
  const some = [
    { index: 3, uuid: 'GPU-d' },
    { index: 9, uuid: 'GPU-x' },
    { index: 0, uuid: 'GPU-a' },
  ];
  const { gpus } = GpuTopology.parse(parseTopology(TWO_PAIRS, some));
  expect(gpus.map(({ uuid, links }) => [uuid, links])).toEqual([
    ['GPU-d', ['X', 'SYS']],
    ['GPU-a', ['SYS', 'X']],
  ]);
});

it.each(['', 'Failed to initialize NVML', '\tGPU0\n', 'GPU0\t X \n', '\u0000\t\t'])(
  'finds no topology in %j',
  (text) => {
    expect(parseTopology(text, cards(2))).toBeNull();
  },
);

it('treats unexpected cells as unknown', () => {
  const text =
    '\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tXGMI\tall of them\t0-1\nGPU1\n';
  expect(read(text, 2).gpus).toEqual([
    { uuid: 'GPU-0', numa_node: null, cpus: null, links: ['X', ''] },
    { uuid: 'GPU-1', numa_node: null, cpus: null, links: ['', ''] },
  ]);
});
