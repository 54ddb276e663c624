import { expect, it } from 'vitest';
import { afterAttempt } from './mail.job.ts';

const HOUR_MS = 3_600_000;

it('marks a mail as failed after eight attempts within 32 hours', () => {
  let nowMs = 0;
  let attempts = 0;
  let state = 'waiting';
  while (state === 'waiting') {
    attempts += 1;
    const move = afterAttempt('transient', attempts, nowMs);
    ({ state } = move);
    nowMs = move.due_at;
  }
  expect([state, attempts]).toEqual(['failed', 8]);
  expect(nowMs).toBeGreaterThan(31 * HOUR_MS);
  expect(nowMs).toBeLessThan(32 * HOUR_MS);
});

it('makes no further attempt after a mail was sent or permanently rejected', () => {
  expect(afterAttempt('sent', 1, 5)).toEqual({ state: 'sent', due_at: 5 });
  expect(afterAttempt('permanent', 1, 5)).toEqual({ state: 'failed', due_at: 5 });
});
