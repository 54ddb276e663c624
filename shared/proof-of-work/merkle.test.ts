import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { leafHash, merkleTree, pathOf, rootAlong, rootOf } from './merkle.ts';

const leavesOf = (count: number) =>
  Array.from({ length: count }, (_, index) => leafHash(index, Buffer.from(`row ${index}`)));

describe.each([1, 2, 3, 5, 8, 13, 64])('a tree of %i rows', (count) => {
  const leaves = leavesOf(count);
  const tree = merkleTree(leaves);

  it('proves every row, and rejects another row, index or path', () => {
    for (const [index, leaf] of leaves.entries()) {
      const path = pathOf(tree, index);
      expect(rootAlong(leaf, { index, count, path })).toEqual(rootOf(tree));
      expect(rootAlong(leafHash(index, Buffer.from('x')), { index, count, path })).not.toEqual(
        rootOf(tree),
      );
      const elsewhere = (index + 1) % count;
      if (elsewhere !== index) {
        expect(rootAlong(leaf, { index: elsewhere, count, path })).not.toEqual(rootOf(tree));
      }
      expect(rootAlong(leaf, { index, count, path: [...path, leaf] })).toBeNull();
      if (path.length > 0) {
        expect(rootAlong(leaf, { index, count, path: path.slice(1) })).toBeNull();
      }
    }
  });
});

it('hashes a long row as the hashes of its pieces', () => {
  const sha256 = (...parts: Uint8Array[]) =>
    createHash('sha256').update(Buffer.concat(parts)).digest();
  const row = Buffer.alloc(9_000, 'row');
  const pieces = [row.subarray(0, 4_096), row.subarray(4_096, 8_192), row.subarray(8_192)];
  const place = Buffer.from([0, 0, 0, 0, 7]);
  expect(leafHash(7, row)).toEqual(sha256(place, ...pieces.map((piece) => sha256(piece))));
  expect(leafHash(7, pieces[0] ?? row)).toEqual(sha256(place, pieces[0] ?? row));
});

it('computes another root after any change of the rows', () => {
  const roots = new Set(
    [leavesOf(4), leavesOf(5), leavesOf(4).toReversed()].map((leaves) =>
      Buffer.from(rootOf(merkleTree(leaves))).toString('hex'),
    ),
  );
  expect(roots.size).toBe(3);
  expect(() => merkleTree([])).toThrow('a tree needs a leaf');
});
