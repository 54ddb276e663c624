import { describe, expect, it } from 'vitest';
import { createLogBuffer, type LogBuffer } from './log-buffer.ts';
import { type LogEntry, mark } from './log-lines.ts';

const line = (n: number, source = 0): LogEntry => ({
  kind: 'line',
  text: `line ${n}`,
  coloured: null,
  id: `c.${n}.0`,
  at: `2026-11-20T00:00:${String(n).padStart(2, '0')}Z`,
  isError: false,
  source,
});
const lines = (from: number, to: number, source = 0) =>
  Array.from({ length: to - from + 1 }, (_, at) => line(from + at, source));
const small = () => createLogBuffer({ entries: 10, chars: 1_000_000 });
const textsOf = (buffer: LogBuffer) => buffer.text(({ text }) => text).split('\n');

describe('a buffer', () => {
  it('numbers its entries, and reports the first new number', () => {
    const buffer = small();
    const changes: number[] = [];
    const end = buffer.subscribe((from) => changes.push(from));
    buffer.append(lines(1, 3));
    buffer.append(lines(4, 5));
    end();
    buffer.append(lines(6, 6));
    expect(changes).toEqual([0, 3]);
    expect([buffer.first(), buffer.end(), buffer.at(4)?.text]).toEqual([0, 6, 'line 5']);
    expect(buffer.at(-1)).toBeUndefined();
  });

  it('keeps the newest entries and the numbers of all', () => {
    const buffer = small();
    buffer.append(lines(1, 12));
    buffer.trim();
    expect([buffer.first(), buffer.end()]).toEqual([2, 12]);
    expect(buffer.at(2)).toEqual(line(3));
    expect(buffer.lastCut()).toMatchObject({ after: 'c.1.0', entries: 1 });
    expect(buffer.cutEntries()).toBe(2);
  });

  it('is bounded in characters too', () => {
    const buffer = createLogBuffer({ entries: 1_000, chars: 2_000 });
    buffer.append(lines(1, 100));
    buffer.trim();
    expect(buffer.end() - buffer.first()).toBeLessThan(20);
  });

  it('is full a quarter above its limits', () => {
    const buffer = small();
    buffer.append(lines(1, 12));
    expect(buffer.isFull()).toBe(false);
    buffer.append(lines(13, 13));
    expect(buffer.isFull()).toBe(true);
  });

  it('takes cut entries back, and drops the newest instead', () => {
    const buffer = small();
    buffer.append(lines(1, 12));
    buffer.trim();
    expect(buffer.restore([line(2)])).toBe('c.11.0');
    expect(buffer.lastCut()).toMatchObject({ after: null, last: { id: 'c.1.0' }, at: line(1).at });
    expect(textsOf(buffer)).toEqual(lines(2, 11).map(({ text }) => text));
    expect([buffer.first(), buffer.end()]).toEqual([1, 11]);
  });

  it('can read cleared entries again', () => {
    const buffer = small();
    buffer.append(lines(1, 3));
    buffer.clear();
    expect([buffer.first(), buffer.end(), buffer.cutEntries()]).toEqual([3, 3, 3]);
    buffer.append(lines(4, 4));
    buffer.clear();
    expect(buffer.lastCut()).toMatchObject({ after: 'c.3.0', entries: 1 });
    expect(buffer.restore(lines(4, 4))).toBeNull();
    expect(buffer.restore(lines(1, 3))).toBeNull();
    expect(textsOf(buffer)).toEqual(lines(1, 4).map(({ text }) => text));
    expect(buffer.lastCut()).toBeNull();
  });

  it('orders the lines of several pods by time', () => {
    const buffer = small();
    const changes: number[] = [];
    buffer.insert([line(1), line(3), line(5)]);
    buffer.subscribe((from) => changes.push(from));
    buffer.insert([
      line(2, 1),
      { ...mark('gap', true, 1), at: line(2).at },
      line(3, 1),
      line(6, 1),
    ]);
    expect(textsOf(buffer).join()).toBe('line 1,line 2,gap,line 3,line 3,line 5,line 6');
    expect(buffer.at(3)).toEqual(line(3));
    expect(changes).toEqual([1]);
    buffer.insert([]);
    expect(changes).toEqual([1]);
  });
});
