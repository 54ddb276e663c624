/** Verification of proofs of work; runs in the verifier thread. */
import type { OpenedRow } from '#shared/api/agent/challenges.ts';
import { leafHash, rootAlong } from '#shared/proof-of-work/merkle.ts';
import { matrixRows, rowFrom } from '#shared/proof-of-work/product.ts';
import { filledBlocks, type Walk, walk } from '#shared/proof-of-work/walk.ts';
import { type Random, systemRandom } from '#shared/runtime/random.ts';

export type RowsTask = {
  kind: 'rows';
  committed: Committed;
  asked: readonly number[];
  opened: readonly OpenedRow[];
};
export type WalkTask = { kind: 'walk'; seed: Uint8Array; walk: Walk };
export type VerifyTask = RowsTask | WalkTask;

/** First fault among rows, or the digest of a walk in hex, depending on the task. */
export type Verified = { fault: RowFault | null } | { digest: string };

export async function verify(task: VerifyTask): Promise<Verified> {
  if (task.kind === 'rows') {
    return { fault: faultInRows(task.committed, task.asked, task.opened, systemRandom) };
  }
  const { seed, walk: asked } = task;
  const digest = await walk(seed, asked, (index) =>
    filledBlocks(seed, asked, { from: index, count: 1 }),
  );
  return { digest: digest.toString('hex') };
}

/** Number of random vectors. A wrong sum passes one vector only if its coefficient is 0, once in 65,536. */
const VECTORS = 2;
const COEFFICIENTS = 65_536;
/** Number of rows of B generated at a time; all of B is never in memory. */
const ROWS_AT_ONCE = 256;

export type Committed = { seed: Uint8Array; n: number; root: Uint8Array };
export type RowFault = 'malformed' | 'not_committed' | 'wrong';

/**
 * Returns the first fault among the requested rows; null if all are correct. Verifies rows of C = A·B against the
 * committed root in n² instead of n³ operations with random vectors x: C_row·x = A_row·(B·x) (Freivalds' algorithm).
 */
export function faultInRows(
  committed: Committed,
  asked: readonly number[],
  opened: readonly OpenedRow[],
  random: Random,
): RowFault | null {
  if (opened.length !== asked.length) return 'malformed';
  const vectors = Array.from({ length: VECTORS }, () => randomVector(committed.n, random));
  const images = imagesOf(committed, vectors);
  for (const [at, index] of asked.entries()) {
    const row = opened[at];
    const fault = row?.index === index ? faultIn(committed, row, vectors, images) : 'malformed';
    if (fault !== null) return fault;
  }
  return null;
}

function faultIn(
  { seed, n, root }: Committed,
  { index, sums, path }: OpenedRow,
  vectors: readonly Float64Array[],
  images: readonly Float64Array[],
): RowFault | null {
  const bytes = Buffer.from(sums, 'base64');
  const row = rowFrom(bytes, n);
  if (row === null) return 'malformed';
  const neighbours = path.map((hash) => Buffer.from(hash, 'hex'));
  const reached = rootAlong(leafHash(index, bytes), { index, count: n, path: neighbours });
  if (reached === null || Buffer.compare(reached, root) !== 0) return 'not_committed';
  const aRow = matrixRows(seed, 'A', { n, from: index, to: index + 1 });
  const holds = vectors.every((vector, at) => dot(row, vector) === dot(aRow, images[at] ?? []));
  return holds ? null : 'wrong';
}

/** B·x for each vector in one pass over B. All values stay below 2^53. */
function imagesOf({ seed, n }: Committed, vectors: readonly Float64Array[]): Float64Array[] {
  const images = vectors.map(() => new Float64Array(n));
  for (let from = 0; from < n; from += ROWS_AT_ONCE) {
    const to = Math.min(n, from + ROWS_AT_ONCE);
    const rows = matrixRows(seed, 'B', { n, from, to });
    for (let k = from; k < to; k += 1) {
      const row = rows.subarray((k - from) * n, (k - from + 1) * n);
      for (const [at, vector] of vectors.entries()) {
        const image = images[at];
        if (image !== undefined) image[k] = dot(row, vector);
      }
    }
  }
  return images;
}

function randomVector(n: number, random: Random): Float64Array {
  const bytes = random.bytes(n * 2);
  const vector = new Float64Array(n);
  for (let at = 0; at < n; at += 1) {
    vector[at] = ((bytes[2 * at] ?? 0) * 256 + (bytes[2 * at + 1] ?? 0)) % COEFFICIENTS;
  }
  return vector;
}

function dot(row: ArrayLike<number>, vector: ArrayLike<number>): number {
  let sum = 0;
  for (let at = 0; at < row.length; at += 1) sum += (row[at] ?? 0) * (vector[at] ?? 0);
  return sum;
}
