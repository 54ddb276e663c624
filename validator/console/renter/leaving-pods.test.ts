import { expect, it } from 'vitest';
import type { PodListItemResponse } from '../api/api.gen.ts';
import { idsOf, withLeaving } from './leaving-pods.ts';

const pod = (id: string) => ({ id, status: 'RUNNING', phase: 'ready' }) as PodListItemResponse;

it('keeps pods that have left the list, as deleted', () => {
  const rows = withLeaving([pod('b'), pod('c')], [pod('a'), pod('b'), pod('d')], [pod('d')]);
  expect(rows.map(({ id, status }) => [id, status])).toEqual([
    ['b', 'RUNNING'],
    ['c', 'RUNNING'],
    ['a', 'DELETED'],
  ]);
  expect(withLeaving([], [], [])).toEqual([]);
});

it('names a list by its pods', () => {
  expect(idsOf([pod('a'), pod('b')])).toBe('a,b');
  expect(idsOf(undefined)).toBe('');
  expect(idsOf({ unexpected: [null] } as never)).toBe('');
});
