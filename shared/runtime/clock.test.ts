import { expect, it } from 'vitest';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { DeadlineError, naiveUtc, parseIsoTime, systemClock, withDeadline } from './clock.ts';

it('sleeps for the given time and rejects with the reason of an abort', async () => {
  const startedMs = systemClock.monotonicMs();
  await systemClock.sleep(30);
  expect(systemClock.monotonicMs() - startedMs).toBeGreaterThanOrEqual(28);
  const leaving = new AbortController();
  const asleep = systemClock.sleep(2 ** 40, leaving.signal);
  leaving.abort(new Error('woken'));
  await expect(asleep).rejects.toThrow('woken');
  await expect(systemClock.sleep(0, leaving.signal)).rejects.toThrow('woken');
  await expect(systemClock.sleep(1, leaving.signal)).rejects.toThrow('woken');
});

it('aborts a signal at the deadline, or earlier with its parent', async () => {
  const deadline = systemClock.deadline(10);
  await systemClock.sleep(30);
  expect(deadline.reason).toMatchObject({ name: 'TimeoutError' });
  const parent = new AbortController();
  const both = systemClock.deadline(60_000, parent.signal);
  parent.abort(new Error('parent'));
  expect(both.reason).toMatchObject({ message: 'parent' });
});

it('formats UTC times with six decimals', () => {
  expect(naiveUtc(0)).toBe('1970-01-01T00:00:00.000000');
  expect(naiveUtc(1_795_218_600_123)).toBe('2026-11-20T23:50:00.123000');
});

it.each([
  ['2026-11-20T23:50:00Z', 1_795_218_600_000],
  ['2026-11-20T23:50:00', 1_795_218_600_000],
  ['2026-11-20T23:50', 1_795_218_600_000],
  ['2026-11-20T23:50:00.123456', 1_795_218_600_123],
  ['2026-11-21T01:50:00+02:00', 1_795_218_600_000],
  ['2026-11-20', null],
  ['2026-13-20T23:50:00Z', null],
  ['2026-11-20T23:50:00 Z', null],
  ['2028-02-29T00:00:00Z', 1_835_395_200_000],
  ['2000-02-29T00:00:00Z', 951_782_400_000],
  ['2026-12-31T23:59:59Z', 1_798_761_599_000],
  ['2026-11-31T12:00:00Z', null],
  ['2026-02-29T12:00:00Z', null],
  ['2100-02-29T12:00:00', null],
  ['2026-02-30T12:00:00+02:00', null],
  ['2026-01-32T12:00:00Z', null],
  ['yesterday', null],
  ['', null],
])('parses %j', (text, epochMs) => {
  expect(parseIsoTime(text)).toBe(epochMs);
});

it('returns the outcome of work that ends before the deadline', async () => {
  const clock = createManualClock();
  expect(await withDeadline(clock, 100, Promise.resolve(1))).toBe(1);
  const failed = withDeadline(clock, 100, Promise.reject(new Error('no')));
  await expect(failed).rejects.toThrow('no');
});

it('rejects at the deadline and drops a later outcome', async () => {
  const clock = createManualClock();
  const work = Promise.withResolvers<number>();
  const outcome = expect(withDeadline(clock, 100, work.promise)).rejects.toThrow(DeadlineError);
  await clock.advance(100);
  await outcome;
  // An unhandled rejection would fail the run.
  work.reject(new Error('late'));
  await clock.advance(1);
});
