import { expect, it } from 'vitest';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { parseNotice, SetNotice } from './notice.schemas.ts';

/** 2027-01-15T08:00:00Z */
const NOW = 1_800_000_000_000;
const HOUR_MS = 3_600_000;
const at = (ms: number) => `${naiveUtc(NOW + ms)}Z`;
const TOMORROW = at(24 * HOUR_MS);
const parse = (body: object) => parseNotice(SetNotice.parse(body), NOW);

it.each([
  [{ starting_at: TOMORROW, period_in_minute: 1 }, 1],
  [{ starting_at: TOMORROW, period_in_minute: 60, permanent_removal: false }, 60],
  [{ start: TOMORROW, minutes: 30, permanent: null, reason: null }, 30],
  [{ starting_at: '2027-01-16T10:00:00+02:00', period_in_minute: 5 }, 5],
  [{ starting_at: '2027-01-16T09:00:00+01:00', permanent_removal: false, minutes: 5 }, 5],
])('accepts %j as maintenance at the shortest lead time', (body, minutes) => {
  expect(parse(body)).toMatchObject({ startAtMs: NOW + 24 * HOUR_MS, minutes });
});

it.each([
  [{ starting_at: at(48 * HOUR_MS), permanent_removal: true }],
  [{ start: at(48 * HOUR_MS), permanent: true, period_in_minute: null }],
])('accepts %j as a removal at the shortest lead time', (body) => {
  expect(parse(body)).toMatchObject({ startAtMs: NOW + 48 * HOUR_MS, minutes: null });
});

it('accepts a start exactly 365 days ahead', () => {
  const startAtMs = NOW + 365 * 24 * HOUR_MS;
  expect(parse({ starting_at: at(startAtMs - NOW), minutes: 5 })).toMatchObject({ startAtMs });
});

it('returns the time as it was sent', () => {
  const body = { starting_at: '2027-01-17T10:00:00+02:00', period_in_minute: 5, reason: 'disks' };
  expect(parse(body)).toMatchObject({ startText: body.starting_at, reason: 'disks' });
});

it.each([
  ['an empty body', {}],
  ['no start', { period_in_minute: 5 }],
  ['neither minutes nor a removal', { starting_at: TOMORROW }],
  ['only permanent_removal false', { starting_at: TOMORROW, permanent_removal: false }],
  [
    'both minutes and a removal',
    { starting_at: at(48 * HOUR_MS), period_in_minute: 5, permanent_removal: true },
  ],
  ['a start without an offset', { starting_at: '2027-01-17T10:00:00', period_in_minute: 5 }],
  ['a start that is not a time', { starting_at: 'tomorrowZ', period_in_minute: 5 }],
  ['a date that does not exist', { starting_at: '2027-02-30T10:00:00Z', period_in_minute: 5 }],
  ['a start too far ahead', { starting_at: at(365 * 24 * HOUR_MS + 1), period_in_minute: 5 }],
  ['zero minutes', { starting_at: TOMORROW, period_in_minute: 0 }],
  ['too many minutes', { starting_at: TOMORROW, period_in_minute: 61 }],
  ['maintenance too soon', { starting_at: at(24 * HOUR_MS - 1), period_in_minute: 5 }],
  ['a removal too soon', { starting_at: at(48 * HOUR_MS - 1), permanent_removal: true }],
  ['a start in the past', { starting_at: at(-HOUR_MS), period_in_minute: 5 }],
])('rejects %s with 400', (_, body) => {
  expect(() => parse(body)).toThrow(expect.objectContaining({ code: 'bad_request' }));
});
