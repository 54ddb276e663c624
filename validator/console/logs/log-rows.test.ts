import { describe, expect, it } from 'vitest';
import { createLogBuffer } from './log-buffer.ts';
import type { LogEntry } from './log-lines.ts';
import { createLogRows, SHOWN_CHARS } from './log-rows.ts';

const line = (chars: number, isError = false): LogEntry => ({
  kind: 'line',
  text: 'x'.repeat(chars),
  coloured: null,
  id: `c.${chars}.0`,
  at: '',
  isError,
  source: 0,
});
const all = () => true;

describe('rows', () => {
  it('are one per entry without wrapping', () => {
    const buffer = createLogBuffer();
    buffer.append([line(10), line(5_000)]);
    const rows = createLogRows(buffer, { columns: null, isShown: all });
    expect([rows.total(), rows.rowOf(1), rows.entryAt(1)]).toEqual([2, 1, { number: 1, row: 1 }]);
  });

  it('are as many as a wrapped line needs, at most those of its shown characters', () => {
    const buffer = createLogBuffer();
    buffer.append([line(0), line(10), line(11), line(100_000)]);
    const rows = createLogRows(buffer, { columns: 10, isShown: all });
    expect([0, 1, 2, 3].map(rows.rowsAt)).toEqual([1, 1, 2, Math.ceil(SHOWN_CHARS / 10)]);
    expect(rows.entryAt(3)).toEqual({ number: 2, row: 2 });
  });

  it('are none for entries that are not shown', () => {
    const buffer = createLogBuffer();
    buffer.append([line(1), line(1, true), line(1)]);
    const isShown = (entry: LogEntry) => entry.kind === 'mark' || !entry.isError;
    const rows = createLogRows(buffer, { columns: null, isShown });
    expect([rows.total(), rows.rowOf(2), rows.entryAt(1)]).toEqual([2, 1, { number: 2, row: 1 }]);
  });

  it('are right for many entries while entries come, leave and return', () => {
    const buffer = createLogBuffer({ entries: 5_000, chars: 1e9 });
    const rows = createLogRows(buffer, { columns: 7, isShown: all });
    const check = () => {
      const numbers = Array.from(
        { length: buffer.end() - buffer.first() },
        (_, at) => buffer.first() + at,
      );
      let row = 0;
      for (const number of numbers) {
        if (number % 97 === 0) {
          expect(rows.rowOf(number)).toBe(row);
          expect(rows.entryAt(row)).toEqual({ number, row });
        }
        row += rows.rowsAt(number);
      }
      expect(rows.total()).toBe(row);
      expect(rows.entryAt(row)).toEqual({ number: buffer.end(), row });
    };
    const many = (count: number) => Array.from({ length: count }, (_, at) => line(at % 40));
    check();
    buffer.append(many(4_000));
    check();
    buffer.append(many(3_000));
    buffer.trim();
    check();
    buffer.restore(many(500));
    check();
    buffer.insert(many(10));
    check();
    buffer.clear();
    check();
  });
});
