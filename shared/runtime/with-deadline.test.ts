import { expect, it } from 'vitest';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { DeadlineError, withDeadline } from './with-deadline.ts';

it('gives the outcome of work that is done in time', async () => {
  const clock = createManualClock();
  expect(await withDeadline(clock, 100, Promise.resolve(1))).toBe(1);
  const failed = withDeadline(clock, 100, Promise.reject(new Error('no')));
  await expect(failed).rejects.toThrow('no');
});

it('stops waiting at the deadline, and drops what comes later', async () => {
  const clock = createManualClock();
  const work = Promise.withResolvers<number>();
  const outcome = expect(withDeadline(clock, 100, work.promise)).rejects.toThrow(DeadlineError);
  await clock.advance(100);
  await outcome;
  // An unhandled rejection would fail the run.
  work.reject(new Error('late'));
  await clock.advance(1);
});
