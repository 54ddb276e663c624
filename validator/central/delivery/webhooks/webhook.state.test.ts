import { expect, it } from 'vitest';
import { afterAttempt, type Progress } from './webhook.state.ts';

const answered = (status: number | null) => ({ status, error: null, durationMs: 1 });
const SECOND = 1_000;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

it('retries an event after 5 s, 30 s, 2 min, 10 min, 1 h, 6 h and 24 h, then continues with the next event', () => {
  let progress: Progress = { attempts: 0, retry_at: 0, failing_since: null };
  const pauses: number[] = [];
  let nowMs = 1_000_000;
  for (;;) {
    const outcome = afterAttempt(answered(500), progress, nowMs);
    if (outcome.kind !== 'retry') {
      expect(outcome).toMatchObject({
        kind: 'next',
        state: 'failed',
        progress: { attempts: 0, retry_at: nowMs, failing_since: 1_000_000 },
      });
      break;
    }
    pauses.push(outcome.progress.retry_at - nowMs);
    nowMs = outcome.progress.retry_at;
    progress = outcome.progress;
  }
  expect(pauses).toEqual([
    ...[5 * SECOND, 30 * SECOND, 120 * SECOND, 600 * SECOND],
    ...[HOUR, 6 * HOUR, 24 * HOUR],
  ]);
});

it.each([200, 201, 204, 299])('counts an event as delivered after status %d', (status) => {
  expect(afterAttempt(answered(status), { attempts: 3, failing_since: 5 }, 9)).toEqual({
    kind: 'next',
    state: 'delivered',
    progress: { attempts: 0, retry_at: 9, failing_since: null },
  });
});

it.each([199, 300, 301, 400, 404, 500, null])('retries an event after status %s', (status) => {
  expect(afterAttempt(answered(status), { attempts: 0, failing_since: null }, 9).kind).toBe(
    'retry',
  );
});

it('disables a webhook at once after status 410, and after five days of failures', () => {
  expect(afterAttempt(answered(410), { attempts: 0, failing_since: null }, 9)).toMatchObject({
    kind: 'disable',
    reason: 'gone',
  });
  const last = { attempts: 7, failing_since: 0 };
  expect(afterAttempt(answered(null), last, 5 * DAY - 1).kind).toBe('next');
  expect(afterAttempt(answered(null), last, 5 * DAY)).toMatchObject({
    kind: 'disable',
    reason: 'failing',
  });
});
