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

it('computes another root after any change of the rows', () => {
  const roots = new Set(
    [leavesOf(4), leavesOf(5), leavesOf(4).toReversed()].map((leaves) =>
      Buffer.from(rootOf(merkleTree(leaves))).toString('hex'),
    ),
  );
  expect(roots.size).toBe(3);
  expect(() => merkleTree([])).toThrow('a tree needs a leaf');
});
