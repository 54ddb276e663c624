import { describe, expect, it } from 'vitest';
import { dateOf, parseApiTime } from '../browser/clock.ts';
import { DEFAULT_START, parseStart, STARTS } from './log-start.ts';

const nowMs = parseApiTime('2026-11-20T12:00:00Z') ?? 0;
const times = {
  nowMs,
  parse: parseApiTime,
  format: (epochMs: number) => dateOf(epochMs).toISOString(),
};

describe('the start of a view', () => {
  it.each([
    ['100', { tail: 100 }],
    ['99999', { tail: 10_000 }],
    ['15m', { since: '2026-11-20T11:45:00.000Z' }],
    ['24h', { since: '2026-11-19T12:00:00.000Z' }],
    ['all', { since: '1970-01-01T00:00:00Z' }],
    ['2026-11-20T10:00:00Z', { since: '2026-11-20T10:00:00.000Z' }],
    ['2026-11-20T10:00:00+02:00', { since: '2026-11-20T08:00:00.000Z' }],
    ['2026-99-20T10:00', null],
    ['yesterday', null],
    ['-5', null],
    ['', null],
  ])('of %j is %j', (value, start) => {
    expect(parseStart(value, times)).toEqual(start);
  });

  it('has only valid choices', () => {
    expect(STARTS.map(({ value }) => parseStart(value, times))).not.toContain(null);
    expect(STARTS.map(({ value }) => value)).toContain(DEFAULT_START);
  });
});
