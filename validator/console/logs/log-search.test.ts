import { describe, expect, it } from 'vitest';
import { createLogBuffer } from './log-buffer.ts';
import type { LogEntry } from './log-lines.ts';
import { createLogSearch, searchParts } from './log-search.ts';

const line = (text: string): LogEntry => ({
  kind: 'line',
  text,
  coloured: null,
  id: `c.${text}`,
  at: '',
  isError: text.startsWith('!'),
  source: 0,
});
const numbered = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, at) => line(`n ${from + at}`));

function searchIn(entries: LogEntry[], text: string, matchCase = false) {
  const buffer = createLogBuffer({ entries: 100_000, chars: 1e9 });
  buffer.append(entries);
  const search = createLogSearch(
    buffer,
    { text, matchCase },
    ({ text: shown }) => shown[0] !== '!',
  );
  const finish = () => {
    while (search.step());
  };
  finish();
  return { buffer, search, finish };
}

describe('a search', () => {
  it('finds lines, and goes around at both ends', () => {
    const { search } = searchIn(
      [line('Error'), line('x'), line('an error'), line('!error')],
      'ERROR',
    );
    expect([search.count(), search.ordinal(2), search.ordinal(1)]).toEqual([2, 2, 0]);
    expect([search.next(0, 1), search.next(2, 1), search.next(2, -1), search.next(0, -1)]).toEqual([
      2, 0, 0, 2,
    ]);
  });

  it('distinguishes cases on request, and takes every character literally', () => {
    expect(searchIn([line('Error'), line('error')], 'E', true).search.count()).toBe(1);
    expect(searchIn([line('a.b'), line('axb')], '.').search.count()).toBe(1);
    const { search } = searchIn([line('x')], 'y');
    expect(search.next(0, 1)).toBeNull();
  });

  it('takes several steps for many lines, and only new lines later', () => {
    const { buffer, search, finish } = searchIn(numbered(0, 12_000), '7');
    const before = search.count();
    buffer.append([line('n 7')]);
    expect(search.step()).toBe(false);
    expect(search.count()).toBe(before + 1);
    buffer.clear();
    finish();
    expect(search.count()).toBe(0);
    buffer.append([line('7')]);
    finish();
    expect(search.ordinal(12_001)).toBe(1);
  });

  it('searches again what has moved', () => {
    const { buffer, search, finish } = searchIn(numbered(0, 20), 'n 1');
    buffer.clear();
    buffer.append(numbered(20, 30));
    finish();
    expect(search.count()).toBe(0);
    buffer.restore(numbered(0, 20));
    finish();
    expect([search.count(), search.next(-100, 1)]).toEqual([11, 1]);
    search.end();
  });
});

it.each([
  ['aXbxc', 'x', ['a', '*X', 'b', '*x', 'c']],
  ['xx', 'x', ['*x', '*x']],
  ['none', 'x', ['none']],
  ['İx', 'x', ['*İx']],
  ['<x>', '', ['<x>']],
])('marks the hits in %j', (text, found, expected) => {
  const parts = searchParts(text, { text: found, matchCase: false });
  expect(parts.map((part) => (part.isHit ? `*${part.text}` : part.text))).toEqual(expected);
});
