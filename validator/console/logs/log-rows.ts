/**
 * Rows of a view: the height of each entry in lines of text. The view has a fixed height per row, so that the position of
 * every entry is known without rendering it. Pure.
 */
import { visibleLength } from './hidden-characters.ts';
import type { LogBuffer } from './log-buffer.ts';
import type { LogEntry } from './log-lines.ts';

/** Characters of a line that the view shows; the rest is shown on request. */
export const SHOWN_CHARS = 4_096;

/** Which entries the view shows, and how. */
export type RowRules = {
  /** Characters per row; null if lines are not wrapped. */
  columns: number | null;
  isShown(entry: LogEntry): boolean;
};

export type LogRows = ReturnType<typeof createLogRows>;

/** Entries whose rows are added up once. */
const BLOCK = 1_024;

type Block = { first: LogEntry; last: LogEntry; rows: number };

export function createLogRows(buffer: LogBuffer, rules: RowRules) {
  const blocks = new Map<number, Block>();

  function rowsIn(from: number, to: number): number {
    let rows = 0;
    for (let number = from; number < to; number += 1) rows += rowsAt(number);
    return rows;
  }

  function rowsAt(number: number): number {
    const entry = buffer.at(number);
    return entry === undefined ? 0 : rowsOf(entry, rules);
  }

  /** Rows of the entries of a block that are in the buffer. The sum of a complete block is stored. */
  function rowsInBlock(block: number): number {
    const from = block * BLOCK;
    const first = buffer.at(from);
    const last = buffer.at(from + BLOCK - 1);
    const known = blocks.get(block);
    // Entries may have moved; then the block begins or ends with others.
    if (known !== undefined && known.first === first && known.last === last) return known.rows;
    const rows = rowsIn(Math.max(from, buffer.first()), Math.min(from + BLOCK, buffer.end()));
    if (first !== undefined && last !== undefined) blocks.set(block, { first, last, rows });
    else blocks.delete(block);
    return rows;
  }

  const firstBlock = () => Math.floor(buffer.first() / BLOCK);
  const lastBlock = () => Math.floor((buffer.end() - 1) / BLOCK);

  return {
    total(): number {
      let rows = 0;
      for (const block of blocks.keys()) if (block < firstBlock()) blocks.delete(block);
      for (let block = firstBlock(); block <= lastBlock(); block += 1) rows += rowsInBlock(block);
      return rows;
    },
    /** Returns the first row of an entry. */
    rowOf(number: number): number {
      const own = Math.floor(number / BLOCK);
      let rows = 0;
      for (let block = firstBlock(); block < own; block += 1) rows += rowsInBlock(block);
      return rows + rowsIn(Math.max(own * BLOCK, buffer.first()), number);
    },
    /** Returns the entry that has a row, with its first row; the end of the buffer for a row behind it. */
    entryAt(row: number): { number: number; row: number } {
      let first = 0;
      for (let block = firstBlock(); block <= lastBlock(); block += 1) {
        const rows = rowsInBlock(block);
        if (first + rows <= row) {
          first += rows;
          continue;
        }
        for (let number = Math.max(block * BLOCK, buffer.first()); ; number += 1) {
          const own = rowsAt(number);
          if (first + own > row) return { number, row: first };
          first += own;
        }
      }
      return { number: buffer.end(), row: first };
    },
    rowsAt,
  };
}

/** Rows of an entry; 0 if it is not shown. Marks have one row. */
function rowsOf(entry: LogEntry, { columns, isShown }: RowRules): number {
  if (!isShown(entry)) return 0;
  if (columns === null || entry.kind === 'mark') return 1;
  const chars = visibleLength(entry.text.slice(0, SHOWN_CHARS));
  return Math.max(Math.ceil(chars / columns), 1);
}
