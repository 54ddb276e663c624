import { describe, expect, it } from 'vitest';
import { DAY_MS, NO_COUNTS, observedSince, reliabilityPermille } from './reliability.plan.ts';

const HOUR_MS = 3_600_000;
const observed = (days: number, share = 1) => ({
  ...NO_COUNTS,
  observed_ms: days * DAY_MS,
  reachable_ms: days * DAY_MS * share,
});

describe('the score', () => {
  it.each([
    ['is unknown without observations', NO_COUNTS, null],
    ['is unknown before a day was observed', observed(0.99), null],
    ['is full for a node that always answered', observed(1), 1_000],
    ['is the share of reachable time', observed(30, 0.995), 995],
    ['is 0 for a node that never answered a check', observed(30, 0), 0],
    [
      'falls with failed launches',
      { ...observed(30), launches_succeeded: 8, launches_failed: 10 },
      500,
    ],
    ['falls to 0.666 with a single failed launch', { ...observed(30), launches_failed: 1 }, 666],
    [
      'falls with interruptions of rentals',
      { ...observed(30), rented_ms: 23 * DAY_MS, interruptions: 10 },
      750,
    ],
    [
      'weighs an interruption less the longer the node was rented',
      { ...observed(30), rented_ms: 30 * DAY_MS, interruptions: 1 },
      973,
    ],
    [
      'is the product of the three factors',
      { ...observed(30, 0.5), launches_failed: 2, interruptions: 7 },
      125,
    ],
  ])('%s', (_, counts, score) => {
    expect(reliabilityPermille(counts)).toBe(score);
  });
});

describe('the time between two reports', () => {
  const node = {
    observed_at: 0,
    first_verified_at: 0,
    slots_free: 2,
    slots_total: 2,
    notice_json: null,
  };
  const notice = (minutes: number | null) =>
    JSON.stringify({
      starting_at: '1970-01-01T00:30:00Z',
      period_in_minute: minutes,
      permanent_removal: minutes === null,
      reason: null,
    });

  it.each([
    ['counts as reachable', node, true, { observed_ms: HOUR_MS, reachable_ms: HOUR_MS }],
    ['counts as unreachable', node, false, { observed_ms: HOUR_MS, reachable_ms: 0, rented_ms: 0 }],
    ['counts as rented', { ...node, slots_free: 1 }, true, { rented_ms: HOUR_MS }],
    ['is not rented while unreachable', { ...node, slots_free: 1 }, false, { rented_ms: 0 }],
  ])('%s', (_, subject, reachable, counts) => {
    expect(observedSince(subject, reachable, HOUR_MS)).toMatchObject(counts);
  });

  it.each([
    ['before the first report', { ...node, observed_at: null }],
    ['before the node was verified', { ...node, first_verified_at: null }],
    ['in announced maintenance', { ...node, notice_json: notice(45) }],
  ])('does not count %s', (_, subject) => {
    expect(observedSince(subject, false, HOUR_MS)).toBeNull();
  });

  it.each([
    ['after maintenance that took longer than announced', { ...node, notice_json: notice(15) }],
    ['before an announced removal', { ...node, notice_json: notice(null) }],
  ])('counts %s', (_, subject) => {
    expect(observedSince(subject, false, HOUR_MS)).toMatchObject({ observed_ms: HOUR_MS });
  });

  it('counts at most two hours, and nothing if the clock was set back', () => {
    expect(observedSince(node, true, DAY_MS)).toMatchObject({ observed_ms: 2 * HOUR_MS });
    const later = { ...node, observed_at: DAY_MS };
    expect(observedSince(later, true, HOUR_MS)).toMatchObject({ observed_ms: 0 });
  });
});
