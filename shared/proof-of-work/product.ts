/**
 * The work that is proven: C = A·B of n × n matrices with entries 0..15 that a seed spells out. Sums of integers
 * are exact on every processor, so that C is one and the same wherever it was made (validator reference 6).
 */
import { KEYSTREAM_BLOCK, keystream } from './keystream.ts';
import { partSeed } from './seed.ts';

/** Rows begin at whole blocks of the stream. */
export const SIZE_STEP = KEYSTREAM_BLOCK;
/** Beyond it a sum of products by a random vector is no exact float64 any more. */
export const MAX_SIZE = 16_384;
const ENTRY_MASK = 0x0f;

export type Side = 'A' | 'B';

/** Rows `from` to `to` (exclusive), row after row, a byte an entry. */
export function matrixRows(
  seed: Uint8Array,
  side: Side,
  { n, from, to }: { n: number; from: number; to: number },
): Uint8Array {
  const rows = keystream(partSeed(seed, side), from * n, (to - from) * n);
  for (let at = 0; at < rows.length; at += 1) rows[at] = (rows[at] ?? 0) & ENTRY_MASK;
  return rows;
}

/** Row of C from the same row of A and the whole of B. */
export function productRow(aRow: Uint8Array, b: Uint8Array): Int32Array {
  const n = aRow.length;
  const sums = new Int32Array(n);
  for (let k = 0; k < n; k += 1) {
    const factor = aRow[k] ?? 0;
    const row = b.subarray(k * n, (k + 1) * n);
    for (let j = 0; j < n; j += 1) sums[j] = (sums[j] ?? 0) + factor * (row[j] ?? 0);
  }
  return sums;
}

/** As it is hashed and sent: 32-bit little-endian integers. */
export function rowBytes(row: Int32Array): Buffer {
  const bytes = Buffer.alloc(row.length * Int32Array.BYTES_PER_ELEMENT);
  for (const [at, sum] of row.entries()) bytes.writeInt32LE(sum, at * Int32Array.BYTES_PER_ELEMENT);
  return bytes;
}

/** The other way round; null when the bytes are no row of n sums. */
export function rowFrom(bytes: Buffer, n: number): Int32Array | null {
  if (bytes.length !== n * Int32Array.BYTES_PER_ELEMENT) return null;
  return Int32Array.from({ length: n }, (_, at) =>
    bytes.readInt32LE(at * Int32Array.BYTES_PER_ELEMENT),
  );
}
