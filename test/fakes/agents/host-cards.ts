/** Cards whose proof of work runs on the test's processor, without containers. */
import type { CardCommitment } from '#shared/api/agent/challenges.ts';
import { leafHash, merkleTree, pathOf, rootOf } from '#shared/proof-of-work/merkle.ts';
import { matrixRows, productRow, rowBytes } from '#shared/proof-of-work/product.ts';
import { nextSeed } from '#shared/proof-of-work/seed.ts';
import { filledBlocks, walk } from '#shared/proof-of-work/walk.ts';
import type { CardTask, GpuProof } from '../../../agent/verify/challenges/gpu-proof.ts';

type Cards = Pick<GpuProof, 'image' | 'commit' | 'open'>;

/** Cards of a host whose agent has no program for the proof of work. */
export const NO_CARDS: Cards = {
  image: async () => null,
  commit: async () => [],
  open: async () => ({ done: [] }),
};

/** Cards that prove their work honestly. */
export function hostCards(): Cards {
  return {
    image: async () => 'sha256:here',
    commit: (tasks) => Promise.all(tasks.map(commit)),
    open: async ({ n, rounds }) => ({
      done: rounds.flatMap(({ round, seed, indices }) => {
        const rows = rowsOf(seed, n);
        const tree = treeOf(rows);
        return indices.map((index) => ({
          round,
          index,
          sums: rows[index]?.toString('base64') ?? '',
          path: pathOf(tree, index).map(hex),
        }));
      }),
    }),
  };
}

async function commit({ uuid, n, rounds, seed, memory }: CardTask): Promise<CardCommitment> {
  const roots: string[] = [];
  let next = seed;
  for (let round = 0; round < rounds; round += 1) {
    const root = rootOf(treeOf(rowsOf(next, n)));
    roots.push(hex(root));
    next = nextSeed(next, root);
  }
  const product = { roots, ms: 0 };
  if (memory === null) return { uuid, fault: null, product, memory };
  const digest = await walk(memory.seed, memory.walk, (index) =>
    filledBlocks(memory.seed, memory.walk, { from: index, count: 1 }),
  );
  return { uuid, fault: null, product, memory: { digest: hex(digest), fill_ms: 0, walk_ms: 0 } };
}

function rowsOf(seed: Uint8Array, n: number): Buffer[] {
  const b = matrixRows(seed, 'B', { n, from: 0, to: n });
  return Array.from({ length: n }, (_, index) =>
    rowBytes(productRow(matrixRows(seed, 'A', { n, from: index, to: index + 1 }), b)),
  );
}

const treeOf = (rows: readonly Uint8Array[]) =>
  merkleTree(rows.map((row, index) => leafHash(index, row)));

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
