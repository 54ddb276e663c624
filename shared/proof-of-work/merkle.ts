/** A tree of hashes over the rows of a result: one root commits to all, a short path opens one. Leaves and nodes are hashed apart. */
import { createHash } from 'node:crypto';

const LEAF = Buffer.from([0]);
const NODE = Buffer.from([1]);
const INDEX_BYTES = 4;

/** Leaves first, the root's level last. */
export type MerkleTree = readonly (readonly Uint8Array[])[];

/** Of the row at `index`: a row moved to another place has another hash. */
export function leafHash(index: number, row: Uint8Array): Buffer {
  const place = Buffer.alloc(INDEX_BYTES);
  place.writeUInt32BE(index);
  return createHash('sha256').update(LEAF).update(place).update(row).digest();
}

/** Over at least one leaf; a node without a neighbour goes up as it is. */
export function merkleTree(leaves: readonly Uint8Array[]): MerkleTree {
  if (leaves.length === 0) throw new RangeError('a tree of nothing');
  const levels: (readonly Uint8Array[])[] = [leaves];
  for (let level = leaves; level.length > 1; ) {
    level = parentsOf(level);
    levels.push(level);
  }
  return levels;
}

/** What stands for every leaf of the tree. */
export function rootOf(tree: MerkleTree): Uint8Array {
  const root = tree.at(-1)?.[0];
  if (root === undefined) throw new RangeError('a tree without a root');
  return root;
}

/** The neighbours on the way from a leaf to the root. */
export function pathOf(tree: MerkleTree, index: number): Uint8Array[] {
  return tree.slice(0, -1).flatMap((level, height) => {
    const neighbour = level[(index >> height) ^ 1];
    return neighbour === undefined ? [] : [neighbour];
  });
}

/** The root that a leaf and its path make in a tree of `count` leaves; null for a path of another form. */
export function rootAlong(
  leaf: Uint8Array,
  { index, count, path }: { index: number; count: number; path: readonly Uint8Array[] },
): Uint8Array | null {
  const left = [...path];
  let node = leaf;
  let at = index;
  for (let width = count; width > 1; width = Math.ceil(width / 2)) {
    if ((at ^ 1) < width) {
      const neighbour = left.shift();
      if (neighbour === undefined) return null;
      node = at % 2 === 0 ? parent(node, neighbour) : parent(neighbour, node);
    }
    at >>= 1;
  }
  return left.length === 0 ? node : null;
}

function parentsOf(level: readonly Uint8Array[]): Uint8Array[] {
  return Array.from({ length: Math.ceil(level.length / 2) }, (_, at) => {
    const [left, right] = [level[2 * at], level[2 * at + 1]];
    if (left === undefined) throw new RangeError('a level with a gap');
    return right === undefined ? left : parent(left, right);
  });
}

function parent(left: Uint8Array, right: Uint8Array): Buffer {
  return createHash('sha256').update(NODE).update(left).update(right).digest();
}
