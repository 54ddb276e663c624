import { expect, it } from 'vitest';
import { batchedRows } from './batched.ts';

type Stored = { key: string; value: number };

/** Reads from `stored`, and records the keys of each query. A query of the key `damaged` fails. */
function reads(stored: readonly Stored[]) {
  const queries: string[][] = [];
  const rowsOf = batchedRows(
    async (keys) => {
      queries.push([...keys]);
      if (keys.includes('damaged')) throw new Error('a row cannot be parsed');
      return stored.filter(({ key }) => keys.includes(key));
    },
    ({ key }) => key,
  );
  return { queries, rowsOf };
}

it('reads the keys of concurrent calls in one query, and nothing from a former call', async () => {
  const stored = [
    { key: 'a', value: 1 },
    { key: 'b', value: 2 },
    { key: 'a', value: 3 },
  ];
  const { queries, rowsOf } = reads(stored);
  expect(await Promise.all(['a', 'b', 'none', 'a'].map(rowsOf))).toEqual([
    [stored[0], stored[2]],
    [stored[1]],
    [],
    [stored[0], stored[2]],
  ]);
  expect(queries).toEqual([['a', 'b', 'none', 'a']]);
  stored.pop();
  expect(await rowsOf('a')).toEqual([stored[0]]);
});

it('limits the keys of one query', async () => {
  const { queries, rowsOf } = reads([]);
  await Promise.all(Array.from({ length: 600 }, (_, index) => rowsOf(String(index))));
  expect(queries.map(({ length }) => length)).toEqual([256, 256, 88]);
});

it('rejects only the calls whose own rows cannot be read', async () => {
  const { rowsOf } = reads([{ key: 'a', value: 1 }]);
  const results = await Promise.allSettled(['a', 'damaged', 'b'].map(rowsOf));
  expect(results).toMatchObject([
    { status: 'fulfilled', value: [{ key: 'a', value: 1 }] },
    { status: 'rejected', reason: { message: 'a row cannot be parsed' } },
    { status: 'fulfilled', value: [] },
  ]);
});
