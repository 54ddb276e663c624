import { describe, expect, it } from 'vitest';
import { createRentalTally } from './rental-tally.ts';

const SECOND_MS = 1_000;

describe('rental tally', () => {
  it('follows a pod from its rental to its end', () => {
    const tally = createRentalTally();
    tally.record(
      { kind: 'rented', pod: 'p1', executor: 'e1', minutes: 90, price_uusd_per_hour: 2_000_000 },
      0,
    );
    tally.record({ kind: 'seen', pod: 'p1', status: 'PENDING', reason: null }, 15 * SECOND_MS);
    tally.record({ kind: 'seen', pod: 'p1', status: 'RUNNING', reason: null }, 45 * SECOND_MS);
    tally.record({ kind: 'seen', pod: 'p1', status: 'RUNNING', reason: null }, 90 * SECOND_MS);
    expect(tally.counts()).toMatchObject({
      accepted: 1,
      startSeconds: [45],
      open: 1,
      completed: 0,
    });
    tally.record({ kind: 'ended', pod: 'p1' }, 100 * SECOND_MS);
    expect(tally.counts()).toMatchObject({ completed: 1, open: 0, interruptions: [] });
    expect(tally.quotes().get('p1')).toBe(3_000_000);
  });

  it('counts an interruption and a failed start once, and not as completed', () => {
    const tally = createRentalTally();
    for (const pod of ['p1', 'p2']) {
      tally.record({ kind: 'rented', pod, executor: 'e1', minutes: 60 }, 0);
    }
    tally.record({ kind: 'seen', pod: 'p1', status: 'RUNNING', reason: null }, 1);
    for (const atMs of [2, 3]) {
      tally.record({ kind: 'seen', pod: 'p1', status: 'FAILED', reason: 'NODE_LOST' }, atMs);
      tally.record({ kind: 'seen', pod: 'p2', status: 'CREATION_FAILED', reason: null }, atMs);
    }
    for (const pod of ['p1', 'p2']) tally.record({ kind: 'ended', pod }, 4);
    const { interruptions, failedStarts, completed, startSeconds, lost } = tally.counts();
    expect(interruptions).toEqual([
      { at_ms: 2, status: 'FAILED', reason: 'NODE_LOST', executor: 'e1' },
    ]);
    expect(lost).toEqual([
      { pod: 'p1', executor: 'e1', atMs: 2, hasRun: true },
      { pod: 'p2', executor: 'e1', atMs: 2, hasRun: false },
    ]);
    expect([...failedStarts]).toEqual([['CREATION_FAILED', 1]]);
    expect(completed).toBe(0);
    expect(startSeconds).toEqual([0.001]);
  });

  it('does not count a pod as lost that its renter could not pay', () => {
    const tally = createRentalTally();
    tally.record({ kind: 'rented', pod: 'p1', executor: 'e1', minutes: 60 }, 0);
    tally.record({ kind: 'seen', pod: 'p1', status: 'RUNNING', reason: null }, 1);
    const reason = 'balance_exhausted';
    tally.record({ kind: 'seen', pod: 'p1', status: 'STOPPED', reason }, 2);
    expect(tally.counts()).toMatchObject({ lost: [], interruptions: [{ reason }] });
  });

  it('names a refusal by its constraint, or else by its code', () => {
    const tally = createRentalTally();
    const code = 'no_executor_matches_spec';
    tally.record({ kind: 'refused', code, constraint: 'max_price_per_gpu_hour' }, 0);
    tally.record({ kind: 'refused', code, constraint: 'max_price_per_gpu_hour' }, 1);
    tally.record({ kind: 'refused', code: 'insufficient_balance' }, 2);
    expect([...tally.counts().refusals]).toEqual([
      ['max_price_per_gpu_hour', 2],
      ['insufficient_balance', 1],
    ]);
  });
});
