import { expect, it } from 'vitest';
import { createFingerprint } from './fingerprint.ts';
import type { Row, Table } from './table.ts';

const TABLE: Table = {
  name: 'things',
  columns: [
    { name: 'id', type: 'INTEGER' },
    { name: 'size', type: 'REAL' },
    { name: 'name', type: 'TEXT' },
    { name: 'data', type: 'BLOB' },
  ],
  key: ['id'],
};

function hashOf(rows: readonly Row[], ignored: readonly string[] = []) {
  const fingerprint = createFingerprint(TABLE, ignored);
  for (const row of rows) fingerprint.add(row);
  return fingerprint.result();
}

const A: Row = [1n, 0.1, 'a', new Uint8Array([1, 255])];
const B: Row = [2n, null, null, null];

it('is the same for the values that each engine returns, in any order', () => {
  expect(hashOf([B, [1, 0.1, 'a', Buffer.from([1, 255])]])).toEqual(hashOf([A, B]));
});

it.each<[string, Row[]]>([
  ['a missing row', [A]],
  ['a row that is doubled', [A, B, B]],
  ['a row in place of another', [A, A]],
  ['an empty text in place of null', [A, [2n, null, '', null]]],
  ['empty bytes in place of null', [A, [2n, null, null, new Uint8Array()]]],
  ['the text null', [A, [2n, null, 'null', null]]],
  [
    'values that are swapped between rows',
    [
      [2n, 0.1, 'a', new Uint8Array([1, 255])],
      [1n, null, null, null],
    ],
  ],
])('differs for %s', (_, rows) => {
  expect(hashOf(rows).hash).not.toBe(hashOf([A, B]).hash);
});

it('distinguishes the signs of zero', () => {
  expect(hashOf([[1n, -0, null, null]]).hash).not.toBe(hashOf([[1n, 0, null, null]]).hash);
});

it('separates neighbouring texts', () => {
  const two: Table = {
    ...TABLE,
    columns: [
      { name: 'a', type: 'TEXT' },
      { name: 'b', type: 'TEXT' },
    ],
  };
  const of = (row: Row) => {
    const fingerprint = createFingerprint(two, []);
    fingerprint.add(row);
    return fingerprint.result().hash;
  };
  expect(of(["a,'1'b", 'c'])).not.toBe(of(['a', "b,'1'c"]));
});

it('ignores columns that the engines set', () => {
  expect(hashOf([[1n, 5, 'a', null]], ['size'])).toEqual(hashOf([[1n, 7, 'a', null]], ['size']));
});
