import { describe, expect, it } from 'vitest';
import type { OpenedRow } from '#shared/api/agent/challenges.ts';
import { leafHash, merkleTree, pathOf, rootOf } from '#shared/proof-of-work/merkle.ts';
import { matrixRows, productRow, rowBytes } from '#shared/proof-of-work/product.ts';
import { seedOf } from '#shared/proof-of-work/seed.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { faultInRows } from './verify.tasks.ts';

const N = 96;
const SEED = seedOf({ nonce: 'n', executorId: 'e', device: 'cpu', purpose: 'product' });
const B = matrixRows(SEED, 'B', { n: N, from: 0, to: N });

type Change = (row: Int32Array, index: number) => void;

/** Commitment and opened rows of a prover that changes rows before (`lie`) or after (`slip`) the commitment. */
function prove(requested: readonly number[], lie: Change = () => {}, slip: Change = () => {}) {
  const rows = Array.from({ length: N }, (_, index) => {
    const row = productRow(matrixRows(SEED, 'A', { n: N, from: index, to: index + 1 }), B);
    lie(row, index);
    return row;
  });
  const tree = merkleTree(rows.map((row, index) => leafHash(index, rowBytes(row))));
  const opened = requested.map((index): OpenedRow => {
    const row = rows[index] ?? new Int32Array(N);
    slip(row, index);
    const path = pathOf(tree, index).map((hash) => Buffer.from(hash).toString('hex'));
    return { round: 0, index, sums: rowBytes(row).toString('base64'), path };
  });
  return { opened, committed: { seed: SEED, n: N, root: rootOf(tree) } };
}

const REQUESTED = [0, 7, 64, 95];
const fault = ({ opened, committed }: ReturnType<typeof prove>, requested = REQUESTED) =>
  faultInRows(committed, requested, opened, systemRandom);

it('accepts honest work', () => {
  expect(fault(prove(REQUESTED))).toBeNull();
});

describe('detects a prover that', () => {
  it('changed one sum of a row before the commitment', () => {
    const lie: Change = (row, index) => {
      if (index === 64) row[17] = (row[17] ?? 0) + 1;
    };
    expect(fault(prove(REQUESTED, lie))).toBe('wrong');
    expect(fault(prove([0, 7], lie), [0, 7])).toBeNull();
  });

  it('swapped two sums of a row', () => {
    const lie: Change = (row) => row.reverse();
    expect(fault(prove(REQUESTED, lie))).toBe('wrong');
  });

  it('computes a row only after the validator requests it', () => {
    expect(
      fault(
        prove(
          REQUESTED,
          (row) => row.fill(0),
          () => {},
        ),
      ),
    ).toBe('wrong');
    const late = prove(REQUESTED, (row) => row.fill(0));
    expect(fault({ ...prove(REQUESTED), committed: late.committed })).toBe('not_committed');
  });

  it('opens another row, too few rows or invalid bytes', () => {
    const { opened, committed } = prove([0, 8, 64, 95]);
    expect(fault({ opened, committed })).toBe('malformed');
    expect(fault({ opened: opened.slice(1), committed })).toBe('malformed');
    const renamed = opened.map((row, at) => ({ ...row, index: REQUESTED[at] ?? 0 }));
    expect(fault({ opened: renamed, committed })).toBe('not_committed');
    const cut = prove(REQUESTED).opened.map((row) => ({ ...row, sums: 'AAAA' }));
    expect(fault({ opened: cut, committed })).toBe('malformed');
  });

  it('answers for another seed', () => {
    const proof = prove(REQUESTED);
    const seed = seedOf({ nonce: 'other', executorId: 'e', device: 'cpu', purpose: 'product' });
    expect(fault({ ...proof, committed: { ...proof.committed, seed } })).toBe('wrong');
  });
});
