/** Verification of proofs of work; runs in the verifier thread. */
import type { OpenedLeaf, OpenedRow } from '#shared/api/agent/challenges.ts';
import { leafHash, rootAlong } from '#shared/proof-of-work/merkle.ts';
import { ENTRY_MASK, matrixBytes, matrixRows, rowFrom } from '#shared/proof-of-work/product.ts';
import { type Random, systemRandom } from '#shared/runtime/random.ts';
import {
  type ChosenParts,
  type CommittedFill,
  type FillFault,
  faultInFill,
  type Walked,
} from './verify-fill.ts';

export type RowsTask = {
  kind: 'rows';
  committed: Committed;
  asked: readonly number[];
  opened: readonly OpenedRow[];
};
export type FillTask = {
  kind: 'fill';
  committed: CommittedFill;
  walked: Walked;
  chosen: ChosenParts;
  opened: readonly OpenedLeaf[];
};
export type VerifyTask = RowsTask | FillTask;

/** First fault among rows, or of a fill, depending on the task. */
export type Verified = { rowFault: RowFault | null } | { fillFault: FillFault | null };

export function verify(task: VerifyTask): Verified {
  switch (task.kind) {
    case 'rows':
      return { rowFault: faultInRows(task.committed, task.asked, task.opened, systemRandom) };
    case 'fill':
      return { fillFault: faultInFill(task.committed, task.walked, task.chosen, task.opened) };
  }
}

/**
 * Bytes per coefficient of the random vector. A row of C with one wrong element passes only if the coefficient of
 * that element is 0, with a probability of 2^-32.
 */
const COEFFICIENT_BYTES = 4;
/** Rows of B generated at a time: small pieces of memory, which the process reuses. */
const ROWS_AT_ONCE = 4;

export type Committed = { seed: Uint8Array; n: number; root: Uint8Array };
export type RowFault = 'malformed' | 'not_committed' | 'wrong';

/**
 * Returns the first fault among the requested rows; null if all are correct. Verifies rows of C = A·B against the
 * committed root in n² instead of n³ operations with a random vector x: C_row·x = A_row·(B·x) (Freivalds' algorithm).
 */
export function faultInRows(
  committed: Committed,
  asked: readonly number[],
  opened: readonly OpenedRow[],
  random: Random,
): RowFault | null {
  if (opened.length !== asked.length) return 'malformed';
  const { n } = committed;
  const vector = randomVector(n, random);
  const image = imageOf(committed, vector);
  for (const [at, index] of asked.entries()) {
    const row = opened[at];
    const fault = row?.index === index ? faultIn(committed, row, vector, image) : 'malformed';
    if (fault !== null) return fault;
  }
  return null;
}

function faultIn(
  { seed, n, root }: Committed,
  { index, sums, path }: OpenedRow,
  vector: Float64Array,
  image: Float64Array,
): RowFault | null {
  const bytes = Buffer.from(sums, 'base64');
  const row = rowFrom(bytes, n);
  if (row === null) return 'malformed';
  if (row.some((sum) => sum < 0 || sum > n * ENTRY_MASK ** 2)) return 'wrong';
  const neighbours = path.map((hash) => Buffer.from(hash, 'hex'));
  const reached = rootAlong(leafHash(index, bytes), { index, count: n, path: neighbours });
  if (reached === null || Buffer.compare(reached, root) !== 0) return 'not_committed';
  const aRow = matrixRows(seed, 'A', { n, from: index, to: index + 1 });
  return exactDot(row, vector) === exactDot(aRow, image) ? null : 'wrong';
}

/** B·x in one pass over B. All values stay below 2^50. */
function imageOf({ seed, n }: Committed, vector: Float64Array): Float64Array {
  const image = new Float64Array(n);
  for (let from = 0; from < n; from += ROWS_AT_ONCE) {
    const rows = matrixBytes(seed, 'B', { n, from, to: from + ROWS_AT_ONCE });
    imageOfRows(rows, from, vector, image);
  }
  return image;
}

/** Image of rows `k` to `k + 3`: independent sums, which a processor adds at the same time. */
function imageOfRows(rows: Uint8Array, k: number, vector: Float64Array, image: Float64Array): void {
  const n = vector.length;
  let [first, second, third, fourth] = [0, 0, 0, 0];
  for (let at = 0; at < n; at += 1) {
    const x = vector[at] ?? 0;
    first += ((rows[at] ?? 0) & ENTRY_MASK) * x;
    second += ((rows[at + n] ?? 0) & ENTRY_MASK) * x;
    third += ((rows[at + 2 * n] ?? 0) & ENTRY_MASK) * x;
    fourth += ((rows[at + 3 * n] ?? 0) & ENTRY_MASK) * x;
  }
  image.set([first, second, third, fourth], k);
}

function randomVector(n: number, random: Random): Float64Array {
  const bytes = Buffer.from(random.bytes(n * COEFFICIENT_BYTES));
  return Float64Array.from({ length: n }, (_, at) => bytes.readUInt32LE(at * COEFFICIENT_BYTES));
}

const LOW = 2 ** 16;

/**
 * Exact dot product in two parts that stay below 2^53 in both calls: elements of C (below 2^22) with coefficients
 * (below 2^32), and elements of A (at most 15) with elements of B·x (below 2^50).
 */
function exactDot(row: ArrayLike<number>, wide: Float64Array): bigint {
  let [low, high] = [0, 0];
  for (let at = 0; at < wide.length; at += 1) {
    const value = wide[at] ?? 0;
    const lowPart = value % LOW;
    low += (row[at] ?? 0) * lowPart;
    high += (row[at] ?? 0) * ((value - lowPart) / LOW);
  }
  return BigInt(high) * BigInt(LOW) + BigInt(low);
}
