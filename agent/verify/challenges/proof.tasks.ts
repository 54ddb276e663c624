/** The products of a challenge; runs in a worker thread. */
import { leafHash } from '#shared/proof-of-work/merkle.ts';
import { matrixRows, productRow, rowBytes } from '#shared/proof-of-work/product.ts';

/** Rows of A computed at a time. */
const ROWS_AT_ONCE = 16;

export type RowsTask = { kind: 'rows'; seed: Uint8Array; n: number; from: number; to: number };
export type OpenTask = { kind: 'open'; seed: Uint8Array; n: number; indices: readonly number[] };
export type ProofTask = RowsTask | OpenTask;

/** Leaf hashes or rows, by the task's kind. */
export type ProofResult = { leaves: Uint8Array[] } | { rows: Uint8Array[] };

export function work(task: ProofTask): ProofResult {
  switch (task.kind) {
    case 'rows':
      return { leaves: leavesOf(task) };
    case 'open':
      return { rows: rowsOf(task) };
  }
}

function leavesOf({ seed, n, from, to }: RowsTask): Uint8Array[] {
  const b = matrixRows(seed, 'B', { n, from: 0, to: n });
  const leaves: Uint8Array[] = [];
  for (let first = from; first < to; first += ROWS_AT_ONCE) {
    const last = Math.min(first + ROWS_AT_ONCE, to);
    const a = matrixRows(seed, 'A', { n, from: first, to: last });
    for (let index = first; index < last; index += 1) {
      const aRow = a.subarray((index - first) * n, (index - first + 1) * n);
      leaves.push(leafHash(index, rowBytes(productRow(aRow, b))));
    }
  }
  return leaves;
}

/** Recomputes rows from the seed, because only their hashes were retained. */
function rowsOf({ seed, n, indices }: OpenTask): Uint8Array[] {
  const b = matrixRows(seed, 'B', { n, from: 0, to: n });
  return indices.map((index) => {
    const aRow = matrixRows(seed, 'A', { n, from: index, to: index + 1 });
    return rowBytes(productRow(aRow, b));
  });
}
