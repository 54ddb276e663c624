/**
 * The proven work: C = A·B of n × n matrices whose entries 0..15 derive from a seed. Integer sums are exact on every
 * processor, so C is identical wherever it is computed.
 */
import { KEYSTREAM_BLOCK, keystream } from './keystream.ts';
import { partSeed } from './seed.ts';

/** Unit of n, which must be a multiple of it, so that rows begin at keystream blocks. */
export const SIZE_STEP = KEYSTREAM_BLOCK;
/** Largest n for which products with a random vector are exact in float64. */
export const MAX_SIZE = 16_384;
/** Bits of a keystream byte that are an entry. */
export const ENTRY_MASK = 0x0f;

export type Side = 'A' | 'B';

type Rows = { n: number; from: number; to: number };

/** Returns the keystream of rows `from` to `to` (exclusive) in row order, one byte per entry. */
export const matrixBytes = (seed: Uint8Array, side: Side, { n, from, to }: Rows): Uint8Array =>
  keystream(partSeed(seed, side), from * n, (to - from) * n);

/** Returns rows `from` to `to` (exclusive) in row order, one byte per entry. */
export function matrixRows(seed: Uint8Array, side: Side, which: Rows): Uint8Array {
  const rows = matrixBytes(seed, side, which);
  for (let at = 0; at < rows.length; at += 1) rows[at] = (rows[at] ?? 0) & ENTRY_MASK;
  return rows;
}

/** Computes a row of C from the same row of A and all of B. */
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

/** Encodes a row for hashing and sending: 32-bit little-endian integers. */
export function rowBytes(row: Int32Array): Buffer {
  const bytes = Buffer.alloc(row.length * Int32Array.BYTES_PER_ELEMENT);
  for (const [at, sum] of row.entries()) bytes.writeInt32LE(sum, at * Int32Array.BYTES_PER_ELEMENT);
  return bytes;
}

/** Decodes a row; null unless the bytes hold n sums. */
export function rowFrom(bytes: Buffer, n: number): Int32Array | null {
  if (bytes.length !== n * Int32Array.BYTES_PER_ELEMENT) return null;
  return Int32Array.from({ length: n }, (_, at) =>
    bytes.readInt32LE(at * Int32Array.BYTES_PER_ELEMENT),
  );
}
