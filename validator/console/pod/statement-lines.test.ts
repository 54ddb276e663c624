import { expect, it } from 'vitest';
import {
  borneUsd,
  furtherPeriods,
  type Interval,
  statementCsv,
  statementLines,
} from './statement-lines.ts';

const interval = (members: Partial<Interval>): Interval => ({
  from: '2026-11-01T00:00:00',
  to: '2026-11-01T01:00:00',
  state: 'running',
  cause: 'started',
  gpu_count: 1,
  price_per_gpu: 2,
  amount: 2,
  ...members,
});

it('joins intervals of one state and price, and keeps them below their line', () => {
  const later = { from: '2026-11-01T02:00:00', to: '2026-11-01T03:00:00' };
  const lines = statementLines([
    interval({}),
    interval({ state: 'unreachable', price_per_gpu: 0, amount: 0 }),
    interval({ ...later, cause: 'returned', amount: 1.5 }),
  ]);
  expect(lines).toMatchObject([
    { state: 'running', amount: 3.5, from: '2026-11-01T00:00:00', to: later.to },
    { state: 'unreachable', amount: 0 },
  ]);
  expect(lines[0]?.intervals.map(({ cause }) => cause)).toEqual(['started', 'returned']);
});

it('counts the periods that have no line', () => {
  const refund = interval({ state: 'refund', amount: -1 });
  const lines = [interval({}), interval({}), refund];
  expect(furtherPeriods({ lines, period_count: 2 })).toBe(0);
  const cut = [...lines, interval({ state: 'further_periods' })];
  expect(furtherPeriods({ lines: cut, period_count: 12_002 })).toBe(12_000);
});

it('computes the part of the lines that the renter did not pay', () => {
  const lines = [interval({ amount: 0.1 }), interval({ amount: 0.2 })];
  expect(borneUsd({ lines, total: 0.3 })).toBe(0);
  expect(borneUsd({ lines, total: 0.25 })).toBe(0.05);
});

it('writes CSV that quotes separators and disarms formulas', () => {
  const lines = [interval({ cause: 'a "b", c' }), interval({ cause: '=1+1', amount: -0.5 })];
  expect(statementCsv({ lines })).toBe(
    [
      'from,to,state,cause,gpu_count,price_per_gpu,amount',
      '2026-11-01T00:00:00,2026-11-01T01:00:00,running,"a ""b"", c",1,2,2',
      "2026-11-01T00:00:00,2026-11-01T01:00:00,running,'=1+1,1,2,-0.5",
      '',
    ].join('\r\n'),
  );
});
