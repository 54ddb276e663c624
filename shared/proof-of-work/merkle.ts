/** A Merkle tree over the rows of a result: the root commits to all rows, a path proves one. Leaves and nodes are hashed with different prefixes. */
import { createHash } from 'node:crypto';

const LEAF = Buffer.from([0]);
const NODE = Buffer.from([1]);
const INDEX_BYTES = 4;
/** Pieces by which long rows are hashed, so that many processors share a row. */
const PIECE_BYTES = 4_096;

/** Levels of hashes, from the leaves to the root. */
export type MerkleTree = readonly (readonly Uint8Array[])[];

/**
 * Hashes a row with its index, so that a row moved to another index has another hash. A row longer than a piece is
 * hashed as the hashes of its pieces.
 */
export function leafHash(index: number, row: Uint8Array): Buffer {
  const place = Buffer.alloc(INDEX_BYTES);
  place.writeUInt32BE(index);
  const leaf = createHash('sha256').update(LEAF).update(place);
  if (row.length <= PIECE_BYTES) return leaf.update(row).digest();
  for (let from = 0; from < row.length; from += PIECE_BYTES) {
    leaf.update(
      createHash('sha256')
        .update(row.subarray(from, from + PIECE_BYTES))
        .digest(),
    );
  }
  return leaf.digest();
}

/** Builds the tree over at least one leaf. A node without a sibling moves up unchanged. */
export function merkleTree(leaves: readonly Uint8Array[]): MerkleTree {
  if (leaves.length === 0) throw new RangeError('a tree needs a leaf');
  const levels: (readonly Uint8Array[])[] = [leaves];
  for (let level = leaves; level.length > 1; ) {
    level = parentsOf(level);
    levels.push(level);
  }
  return levels;
}

export function rootOf(tree: MerkleTree): Uint8Array {
  const root = tree.at(-1)?.[0];
  if (root === undefined) throw new RangeError('a tree without a root');
  return root;
}

/** Returns the siblings on the path from a leaf to the root. */
export function pathOf(tree: MerkleTree, index: number): Uint8Array[] {
  return tree.slice(0, -1).flatMap((level, height) => {
    const neighbour = level[(index >> height) ^ 1];
    return neighbour === undefined ? [] : [neighbour];
  });
}

/** Computes the root from a leaf and its path in a tree of `count` leaves. Null if the path has the wrong length. */
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
