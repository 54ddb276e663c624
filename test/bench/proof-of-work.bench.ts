/** CPU cost of verifying a matrix product in the validator, compared with the cost of computing it on a host. */

import { leafHash, merkleTree, pathOf, rootOf } from '#shared/proof-of-work/merkle.ts';
import { matrixRows, productRow, rowBytes } from '#shared/proof-of-work/product.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { faultInRows } from '../../validator/inspection/proof/verify.tasks.ts';
import { type Row, ratioAtMost } from '../measure/row.ts';

const N = 4_096;
const OPENED = 16;
/** One of this many rows is computed and its time multiplied: computing all rows takes a minute. */
const EVERY = 16;
const MS_PER_SECOND = 1_000;
const MAX_SHARE = 0.05;

export async function proofOfWork(): Promise<Row[]> {
  const seed = systemRandom.bytes(32);
  const computed = timed(() => productOf(seed));
  const indices = computed.result.made.slice(0, OPENED);
  const opened = indices.map((index) => ({
    round: 0,
    index,
    sums: computed.result.rows.get(index)?.toString('base64') ?? '',
    path: pathOf(computed.result.tree, index).map((hash) => Buffer.from(hash).toString('hex')),
  }));
  const root = rootOf(computed.result.tree);
  const verified = timed(() => faultInRows({ seed, n: N, root }, indices, opened, systemRandom));
  if (verified.result !== null) throw new Error(`honest rows are ${verified.result}`);
  const measured = { ours: verified.seconds, reference: computed.seconds * EVERY };
  const against = `computing it on one core, estimated from every ${EVERY}th row`;
  return [ratioAtMost(`verifying a product of ${N}²`, 's', against, measured, MAX_SHARE)];
}

/** Some rows of a product, with a hash tree root that is valid for those rows only. */
function productOf(seed: Uint8Array) {
  const b = matrixRows(seed, 'B', { n: N, from: 0, to: N });
  const rows = new Map<number, Buffer>();
  for (let index = 0; index < N; index += EVERY) {
    const aRow = matrixRows(seed, 'A', { n: N, from: index, to: index + 1 });
    rows.set(index, rowBytes(productRow(aRow, b)));
  }
  const none = Buffer.alloc(0);
  const leaves = Array.from({ length: N }, (_, index) => leafHash(index, rows.get(index) ?? none));
  return { rows, made: [...rows.keys()], tree: merkleTree(leaves) };
}

function timed<T>(work: () => T): { result: T; seconds: number } {
  const beganMs = systemClock.monotonicMs();
  const result = work();
  return { result, seconds: (systemClock.monotonicMs() - beganMs) / MS_PER_SECOND };
}
