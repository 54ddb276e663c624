import { expect, it } from 'vitest';
import type { LedgerLine } from '../api/api.gen.ts';
import { CSV_LINES, newestMicro, podOf, postedMicro, readJournalCsv, titleOf } from './journal.ts';

it.each([
  ['usage', 'pod-1:17', 'pod-1'],
  ['pod-hold', 'pod-1', 'pod-1'],
  ['transfer', 'x', null],
  ['top-up', 'pay-in:x', null],
])('the pod of %s %s is %s', (type, id, pod) => {
  expect(podOf({ cause_type: type, cause_id: id })).toBe(pod);
});

it('keeps the name of an unknown cause', () => {
  expect([titleOf({ cause_type: 'usage' }), titleOf({ cause_type: 'new-cause' })]).toEqual([
    'Use of a pod',
    'new-cause',
  ]);
});

/** Answers like the API for a journal of `total` lines. */
function journalOf(total: number) {
  const requested: number[] = [];
  const read = async (after: number) => {
    requested.push(after);
    const count = Math.min(CSV_LINES, total - after);
    const rows = Array.from({ length: count }, (_, at) => `${after + at + 1},line`);
    return ['seq,kind', ...rows, ''].join('\r\n');
  };
  return { read, requested };
}

it.each([
  [0, [0]],
  [1, [0]],
  [1_000, [0, 1_000]],
  [2_500, [0, 1_000, 2_000]],
])('joins the pages of %i lines', async (total, requests) => {
  const { read, requested } = journalOf(total);
  const { text, lines, isComplete } = await readJournalCsv(read);
  expect(requested).toEqual(requests);
  const rows = text.split('\r\n');
  expect([lines, isComplete, rows.length]).toEqual([total, true, total + 2]);
  expect(rows[0]).toBe('seq,kind');
  expect(new Set(rows).size).toBe(total + 2);
});

it('compares the balance of an account with that of its journal in micro-dollars', () => {
  expect(postedMicro({ balance: 0.1, unposted: 0.2 })).toBe(300_000);
  expect(postedMicro(undefined)).toBe(null);
  const line = { balance_usd: 0.3 } as LedgerLine;
  expect(newestMicro({ lines: [line], next_after: null, next_before: null })).toBe(300_000);
  expect(newestMicro({ lines: [], next_after: null, next_before: null })).toBe(null);
  expect(newestMicro('seq,kind')).toBe(null);
});

it('ends at its limit', async () => {
  expect(await readJournalCsv(journalOf(1_000_000).read)).toMatchObject({
    lines: 200_000,
    isComplete: false,
  });
});
