/** Which of the free GPUs a pod gets (agent reference 9): near to each other, and little room spoilt. Pure. */
import type { GpuTopology } from '#shared/api/agent/inventory.ts';

/** One GPU or MIG device; `card` is itself or the card that it is part of. */
export type FreeGpu = { uuid: string; card: string };

/** How near two cards are, nearest first; NVLink stands above all of them, by its number of links. */
const NEARNESS = ['X', 'PIX', 'PXB', 'PHB', 'NODE', 'SYS'];
const NVLINK = /^NV(\d{1,3})$/;

/** So many are compared one by one: all that a host of twelve cards has. On larger ones good sets are grown. */
const MAX_SETS = 1_000;

type Place = { gpu: FreeGpu; numa: number | null; row: number };
type Near = readonly (readonly number[])[];

/**
 * `count` of `free`, which come in the order of preference among equals. First a set that is joined by NVLink
 * throughout, then one on one memory node, then the nearest; among those the one that leaves the others the
 * most of theirs. Fewer than asked for when there are no more; the same answer for the same question.
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
  // As they were given, so that the same set is always named alike.
  return free.filter((_, index) => best.set.includes(index)).map(uuidOf);
}

/** How many sets of `count` there are among `total`. */
function countSets(total: number, count: number): number {
  return Array.from({ length: count }, (_, index) => (total - index) / (index + 1)).reduce(
    (product, factor) => product * factor,
    1,
  );
}

/** Each set of `count` indices below `total`, the lowest first. */
function allSets(total: number, count: number, from = 0): number[][] {
  if (count === 0) return [[]];
  const firsts = Array.from({ length: total - from - count + 1 }, (_, index) => from + index);
  return firsts.flatMap((first) =>
    allSets(total, count - 1, first + 1).map((rest) => [first, ...rest]),
  );
}

/** The set that comes from always adding the one that suits those in it best. Indices of `places`. */
function grow(start: number, count: number, places: readonly Place[], near: Near): number[] {
  const set = [start];
  // Kept up to date with each addition: computed anew they would take seconds on the largest hosts.
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
  const spoilt = left.flatMap((a) => set.map((b) => near[a]?.[b] ?? 0));
  return [Number(pairs.every(isNvlink)), Number(oneNode), sum(pairs), -sum(spoilt)];
}

/** The first that differs decides. */
function isMore(a: readonly number[], b: readonly number[]): boolean {
  const at = a.findIndex((score, index) => score !== b[index]);
  return at >= 0 && (a[at] ?? 0) > (b[at] ?? 0);
}

const isNvlink = (value: number) => value > NEARNESS.length;

/** 0 for what is not known. */
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
