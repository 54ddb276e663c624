/** Tables and rows of a database, on either engine. */

/** A stored value. Whole numbers are bigints or numbers. */
export type Value = string | number | bigint | Uint8Array | null;
/** Values in the order of the table's columns. */
export type Row = readonly Value[];

export type ColumnType = 'INTEGER' | 'REAL' | 'TEXT' | 'BLOB';

export type Table = {
  name: string;
  columns: readonly { name: string; type: ColumnType }[];
  /** Columns of the primary key. */
  key: readonly string[];
};

/** Size of a number, for limits of memory. */
const NUMBER_BYTES = 8;

/** Approximate size of a row in bytes. */
export function sizeOf(row: Row): number {
  let bytes = 0;
  for (const value of row) {
    bytes += typeof value === 'string' || value instanceof Uint8Array ? value.length : NUMBER_BYTES;
  }
  return bytes;
}

/** Text from which both engines read the same double: JavaScript writes the shortest, but drops the sign of zero. */
export function realText(value: number): string {
  return Object.is(value, -0) ? '-0' : String(value);
}

/** Quotes a name for SQL. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
