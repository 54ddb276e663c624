/** Hash of the rows of a table that is the same on both engines and in any order of the rows. Pure. */
import { hash } from 'node:crypto';
import { type ColumnType, type Row, realText, type Table, type Value } from './table.ts';

/** Number of 32-bit words of a SHA-256. */
const WORDS = 8;
const WORD_BYTES = 4;

/**
 * Creates a hash. Each row is hashed with SHA-256, and the hashes are added word by word, so that a row that is missing,
 * doubled or changed changes the sum. `ignored` columns do not count.
 */
export function createFingerprint({ columns }: Table, ignored: readonly string[]) {
  const counted = columns.flatMap(({ name, type }, index) =>
    ignored.includes(name) ? [] : [{ index, type }],
  );
  const sums = new Uint32Array(WORDS);
  let rows = 0;
  return {
    add(row: Row): void {
      const text = counted.map(({ index, type }) => encoded(row[index] ?? null, type)).join(',');
      const digest = hash('sha256', text, 'buffer');
      for (let word = 0; word < WORDS; word += 1) {
        sums[word] = (sums[word] ?? 0) + digest.readUInt32BE(word * WORD_BYTES);
      }
      rows += 1;
    },
    /** Number of rows and their hash, hex. */
    result: () => ({
      rows,
      hash: [...sums].map((sum) => sum.toString(16).padStart(2 * WORD_BYTES, '0')).join(''),
    }),
  };
}

/** Encodes a value so that different values of a row never have the same text. */
function encoded(value: Value, type: ColumnType): string {
  if (value === null) return 'null';
  if (value instanceof Uint8Array) return `x${Buffer.from(value).toString('hex')}`;
  if (typeof value === 'string') return `'${value.length}'${value}`;
  return type === 'REAL' ? `r${realText(Number(value))}` : String(value);
}
