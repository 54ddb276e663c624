import { expect, it } from 'vitest';
import { factsOf, NOW_MS, resultOf } from '../../test/fixtures/check-facts.ts';
import type { RentalFacts } from './measured.ts';

const INTERVAL_MS = 900_000;
const REPORT = {
  report_id: '00000000-0000-4000-8000-000000000001',
  shortfall: '1 of 2 cards',
  confirmed_ms: NOW_MS - 2 * INTERVAL_MS,
};
const PASSED: RentalFacts = {
  status: 'passed',
  step: null,
  detail: '',
  ms: 1,
  at_ms: NOW_MS,
  memory: null,
  pods: [],
  refused: false,
  repeated: false,
};

const judged = (rental: RentalFacts | null, change: { rented?: boolean } = {}) =>
  resultOf(
    'renter_report',
    factsOf({ ...change, measured: { renter_report: REPORT, rental, interval_ms: INTERVAL_MS } }),
  );

it('fails a node with a confirmed report at once, also a rented one', () => {
  expect(judged(null)).toMatchObject({
    passed: false,
    verdict: 'failed',
    reason_code: 'RENTER_REPORT_CONFIRMED',
    measured: `1 of 2 cards (report ${REPORT.report_id})`,
  });
  expect(judged(null, { rented: true }).passed).toBe(false);
});

it('passes once a test rental has passed a full interval after the confirmation', () => {
  const endedAt = (ms: number) => judged({ ...PASSED, at_ms: REPORT.confirmed_ms + ms }).passed;
  expect([endedAt(0), endedAt(INTERVAL_MS - 1), endedAt(INTERVAL_MS)]).toEqual([
    false,
    false,
    true,
  ]);
  expect(judged({ ...PASSED, status: 'failed', step: 'inside' }).passed).toBe(false);
  expect(resultOf('renter_report', factsOf()).passed).toBe(true);
});
