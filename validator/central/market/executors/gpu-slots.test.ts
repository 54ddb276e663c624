import { expect, it } from 'vitest';
import type { GpuTopology } from '#shared/api/agent/inventory.ts';
import { testInventory } from '../../../../test/fixtures/host-inventory.ts';
import { chooseGpus, freeSlotsFor } from './gpu-slots.ts';

const ID = '11111111-1111-4111-8111-111111111111';

it('creates a slot for every device that no pod uses', () => {
  const { devices } = testInventory(ID, { gpus: 2 }).gpu;
  const [first, second] = devices;
  const held = [{ executor_id: ID, idx: 0, gpu_uuid: String(first?.uuid), pod_id: 'p' }];
  expect(freeSlotsFor(ID, held, devices)).toEqual([
    { executor_id: ID, idx: 1, gpu_uuid: second?.uuid, pod_id: null },
  ]);
});

it('assigns another index to a swapped card while a pod uses its index', () => {
  const { devices } = testInventory(ID, { gpus: 1 }).gpu;
  const held = [{ executor_id: ID, idx: 0, gpu_uuid: 'GPU-gone', pod_id: 'p' }];
  expect(freeSlotsFor(ID, held, devices)).toMatchObject([{ idx: 1, gpu_uuid: devices[0]?.uuid }]);
});

it('creates no slot for a device that the host excludes from pods', () => {
  const { devices } = testInventory(ID, { gpus: 4 }).gpu;
  const [sound, dirty, cordoned, held] = devices;
  if (!sound || !dirty || !cordoned || !held) throw new Error('four devices');
  const slots = freeSlotsFor(
    ID,
    [{ executor_id: ID, idx: 3, gpu_uuid: held.uuid, pod_id: 'p' }],
    [
      sound,
      { ...dirty, lease_state: 'dirty' },
      { ...cordoned, cordoned: { reason: 'Xid: Xid 79', since_ms: 1 } },
      held,
    ],
  );
  expect(slots.map(({ gpu_uuid }) => gpu_uuid)).toEqual([sound.uuid]);
});

it('creates a slot for each MIG device of a split card', () => {
  const [card] = testInventory(ID, { gpus: 1 }).gpu.devices;
  if (card === undefined) throw new Error('one device');
  const part = (uuid: string) => ({
    ...card,
    uuid,
    mig: { profile: '1g.10gb', parent_uuid: card.uuid },
  });
  const slots = freeSlotsFor(ID, [], [part('MIG-a'), part('MIG-b'), part('MIG-c')]);
  expect(slots.map(({ idx, gpu_uuid }) => [idx, gpu_uuid])).toEqual([
    [0, 'MIG-a'],
    [1, 'MIG-b'],
    [2, 'MIG-c'],
  ]);
});

/** Topology of `numa.length` cards; `links(a, b)` is the connection of two cards. */
function topologyOf(
  numa: readonly (number | null)[],
  links: (a: number, b: number) => string,
): GpuTopology {
  const gpus = numa.map((numa_node, a) => ({
    uuid: String(a),
    numa_node,
    cpus: null,
    links: numa.map((_, b) => (a === b ? 'X' : links(a, b))),
  }));
  return { gpus };
}

const cards = (...names: number[]) =>
  names.map((name) => ({ uuid: String(name), card: String(name) }));
const choose = (count: number, free: readonly number[], topology: GpuTopology | null) =>
  chooseGpus(count, cards(...free), topology).join('');

const switched = topologyOf([0, 0, 0, 0, 1, 1, 1, 1], () => 'NV18');
const pairs = topologyOf([0, 0, 1, 1], (a, b) => (a >> 1 === b >> 1 ? 'NV4' : 'SYS'));
/** Topology without NVLink: pairs (0-1, 2-3, and so on) behind one PCIe switch, and two NUMA nodes of four cards. */
const pcie = topologyOf([0, 0, 0, 0, 1, 1, 1, 1], (a, b) => {
  if (a >> 1 === b >> 1) return 'PIX';
  return a >> 2 === b >> 2 ? 'NODE' : 'SYS';
});
/** NVLink between cards 0 and 1, which are on different NUMA nodes. */
const crossed = topologyOf([0, 1, 0, 1], (a, b) =>
  a % 2 === b % 2 ? 'PIX' : a + b === 1 ? 'NV4' : 'SYS',
);

it.each([
  ['one NVLink clique', 2, [1, 2, 3], pairs, '23'],
  ['cards of a clique that are on one NUMA node', 4, [0, 2, 4, 5, 6, 7], switched, '4567'],
  ['cards on one NUMA node, without NVLink', 3, [0, 1, 3, 4, 6], pcie, '013'],
  ['an NVLink clique to one NUMA node', 2, [0, 1, 2, 3], crossed, '01'],
  ['a pair behind one PCIe switch', 2, [1, 4, 6, 7], pcie, '67'],
  ['a card whose NVLink partner is taken', 1, [0, 1, 2], pairs, '2'],
  ['the last free card of a pair', 1, [0, 1, 3, 4, 5, 6, 7], pcie, '3'],
  ['the lowest indices among equals', 2, [0, 1, 2, 3, 4, 5, 6, 7], switched, '01'],
  ['all free cards if exactly as many are requested', 3, [5, 6, 7], switched, '567'],
  ['the first cards if the topology is unknown', 2, [3, 1, 2], null, '31'],
])('prefers %s', (_, count, free, topology, chosen) => {
  expect(choose(count, free, topology)).toBe(chosen);
});

it('finds a clique that a greedy choice would miss', () => {
  // Card 0 is nearest to card 1, but only cards 0, 2 and 3 are fully connected.
  const links = ['01', '02', '03', '23'];
  const trap = topologyOf([0, 0, 0, 0], (a, b) => {
    const pair = [a, b].toSorted((x, y) => x - y).join('');
    return pair === '01' ? 'NV12' : links.includes(pair) ? 'NV4' : 'PIX';
  });
  expect(choose(3, [0, 1, 2, 3], trap)).toBe('023');
});

it('packs MIG devices on as few cards as possible', () => {
  const free = ['a0', 'b0', 'b1', 'a1', 'a2'].map((uuid) => ({
    uuid,
    card: uuid[0] === 'a' ? '0' : '2',
  }));
  expect(chooseGpus(2, free, pairs)).toEqual(['b0', 'b1']);
  expect(chooseGpus(3, free, pairs)).toEqual(['a0', 'a1', 'a2']);
});

it('returns all GPUs if more are requested, and none for a count of 0', () => {
  expect(choose(9, [2, 0], switched)).toBe('20');
  expect(choose(0, [2, 0], null)).toBe('');
  expect(choose(0, [2, 0], switched)).toBe('');
});

it('chooses whole switch groups on the largest host', () => {
  const numa = Array.from({ length: 64 }, (_, index) => index >> 3);
  const large = topologyOf(numa, (a, b) => (a >> 3 === b >> 3 ? 'NV18' : 'SYS'));
  const free = numa.map((_, index) => index);
  expect(chooseGpus(8, cards(...free.slice(3)), large)).toEqual(
    Array.from({ length: 8 }, (_, index) => String(index + 8)),
  );
  expect(chooseGpus(32, cards(...free), large)).toHaveLength(32);
});
