/** The GPU slots of an executor, and the choice of GPUs for a pod. Pure. */
import { type GpuDevice, type GpuTopology, isRentable } from '#shared/api/agent/inventory.ts';
import type { GpuSlot } from '../../platform/database/tables.ts';

/**
 * Returns the free slots; the `held` slots are unchanged. A device that its host excludes from new pods has no slot. A
 * device keeps its own index unless a held slot has this index; then the device gets the lowest free index.
 */
export function freeSlotsFor(
  executorId: string,
  held: readonly GpuSlot[],
  devices: readonly GpuDevice[],
): GpuSlot[] {
  const heldUuids = new Set(held.map((slot) => slot.gpu_uuid));
  const used = new Set(held.map((slot) => slot.idx));
  const added = devices.filter((device) => isRentable(device) && !heldUuids.has(device.uuid));
  return added
    .toSorted((a, b) => a.index - b.index)
    .map((device) => {
      const idx = used.has(device.index) ? lowestFree(used) : device.index;
      used.add(idx);
      return { executor_id: executorId, idx, gpu_uuid: device.uuid, pod_id: null };
    });
}

/** Returns true if both lists have the same GPUs at the same indices, in any order. */
export function isSameSlots(some: readonly GpuSlot[], others: readonly GpuSlot[]): boolean {
  const uuids = new Map(some.map(({ idx, gpu_uuid: uuid }) => [idx, uuid]));
  return (
    some.length === others.length &&
    others.every(({ idx, gpu_uuid: uuid }) => uuids.get(idx) === uuid)
  );
}

function lowestFree(used: ReadonlySet<number>): number {
  let index = 0;
  while (used.has(index)) index += 1;
  return index;
}

/** A GPU or MIG device; `card` is the physical GPU. */
export type FreeGpu = { uuid: string; card: string };

/** Kinds of PCIe connection, nearest first. NVLink ranks above all PCIe connections, by its number of links. */
const NEARNESS = ['X', 'PIX', 'PXB', 'PHB', 'NODE', 'SYS'];
const NVLINK = /^NV(\d{1,3})$/;

/**
 * Number of sets of cards up to which all sets are compared: enough for a host with twelve cards. On larger hosts, sets
 * are grown greedily.
 */
const MAX_SETS = 1_000;

type Place = { gpu: FreeGpu; numa: number | null; row: number };
type Near = readonly (readonly number[])[];

/**
 * Chooses `count` of `free`, which are ordered by preference. Prefers a set that is fully connected by NVLink, then a
 * set on a single NUMA node, then the nearest set; among equal sets, the one that leaves the best connections to the
 * remaining GPUs. Returns fewer if there are not enough. Deterministic.
 */
export function chooseGpus(
  count: number,
  free: readonly FreeGpu[],
  topology: GpuTopology | null,
): string[] {
  const places = free.map((gpu): Place => {
    const row = topology?.gpus.findIndex(({ uuid }) => uuid === gpu.card) ?? -1;
    return { gpu, row, numa: topology?.gpus[row]?.numa_node ?? null };
  });
  const nothingKnown = places.every(({ row }) => row < 0);
  const noChoice = count < 1 || count >= places.length;
  if (nothingKnown || noChoice) return free.slice(0, count).map(uuidOf);
  const near = places.map((a) => places.map((b) => nearness(linkBetween(topology, a, b))));
  const sets =
    countSets(places.length, count) <= MAX_SETS
      ? allSets(places.length, count)
      : places.map((_, start) => grow(start, count, places, near));
  const scored = sets.map((set) => ({ set, scores: scoresOf(set, places, near) }));
  const best = scored.reduce((a, b) => (isMore(b.scores, a.scores) ? b : a));
  // Keeps the order of `free`, so that the same set always has the same order.
  return free.filter((_, index) => best.set.includes(index)).map(uuidOf);
}

/** Number of subsets of size `count`. */
function countSets(total: number, count: number): number {
  return Array.from({ length: count }, (_, index) => (total - index) / (index + 1)).reduce(
    (product, factor) => product * factor,
    1,
  );
}

/** All subsets of size `count` of the indices below `total`. */
function allSets(total: number, count: number, from = 0): number[][] {
  if (count === 0) return [[]];
  const firsts = Array.from({ length: total - from - count + 1 }, (_, index) => from + index);
  return firsts.flatMap((first) =>
    allSets(total, count - 1, first + 1).map((rest) => [first, ...rest]),
  );
}

/** Grows a set by always adding the GPU that fits best. Returns indices of `places`. */
function grow(start: number, count: number, places: readonly Place[], near: Near): number[] {
  const set = [start];
  // Sums are updated with each addition, because computing them anew would take seconds on the largest hosts.
  const options = places.map((place, index) => ({
    index,
    joined: true,
    sameNode: place.numa !== null && place.numa === places[start]?.numa,
    toSet: 0,
    toOthers: sum(near[index] ?? []) - (near[index]?.[index] ?? 0),
  }));
  let left = options;
  for (let added = start; ; ) {
    left = left.filter(({ index }) => index !== added);
    for (const option of left) {
      const value = near[option.index]?.[added] ?? 0;
      option.joined &&= isNvlink(value);
      option.toSet += value;
      option.toOthers -= value;
    }
    const [first] = left;
    if (set.length >= count || first === undefined) return set;
    added = left.reduce((a, b) => (isMore(suits(b), suits(a)) ? b : a), first).index;
    set.push(added);
  }
}

function suits(option: { joined: boolean; sameNode: boolean; toSet: number; toOthers: number }) {
  return [Number(option.joined), Number(option.sameNode), option.toSet, -option.toOthers];
}

function scoresOf(set: readonly number[], places: readonly Place[], near: Near): number[] {
  const pairs = set.flatMap((a, at) => set.slice(at + 1).map((b) => near[a]?.[b] ?? 0));
  const numa = places[set[0] ?? 0]?.numa;
  const oneNode = numa !== null && set.every((index) => places[index]?.numa === numa);
  const isIn = new Set(set);
  const left = places.flatMap((_, index) => (isIn.has(index) ? [] : [index]));
  const lost = left.flatMap((a) => set.map((b) => near[a]?.[b] ?? 0));
  return [Number(pairs.every(isNvlink)), Number(oneNode), sum(pairs), -sum(lost)];
}

/** Compares lexicographically. */
function isMore(a: readonly number[], b: readonly number[]): boolean {
  const at = a.findIndex((score, index) => score !== b[index]);
  return at >= 0 && (a[at] ?? 0) > (b[at] ?? 0);
}

const isNvlink = (value: number) => value > NEARNESS.length;

/** Rank of a link: higher for a nearer link, 0 for an unknown link. */
function nearness(link: string): number {
  const links = NVLINK.exec(link)?.[1];
  if (links !== undefined) return NEARNESS.length + Number(links);
  const at = NEARNESS.indexOf(link);
  return at < 0 ? 0 : NEARNESS.length - at;
}

function linkBetween(topology: GpuTopology | null, a: Place, b: Place): string {
  if (a.gpu.card === b.gpu.card) return 'X';
  return topology?.gpus[a.row]?.links[b.row] ?? '';
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

const uuidOf = ({ uuid }: FreeGpu) => uuid;
