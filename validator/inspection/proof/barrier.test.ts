import { expect, it } from 'vitest';
import { createManualClock } from '../../../test/fakes/manual-clock.ts';
import { createBarrier } from './barrier.ts';

/** How many have got through. */
function waiters(count: number) {
  const clock = createManualClock();
  const barrier = createBarrier(clock, count, 1_000);
  const passed: number[] = [];
  const come = (who: number) => void barrier.arrive().then(() => passed.push(who));
  return { clock, barrier, passed, come };
}

it('lets nobody through before all have come or left', async () => {
  const { clock, barrier, passed, come } = waiters(3);
  come(1);
  come(2);
  await clock.advance(500);
  expect(passed).toEqual([]);
  barrier.leave();
  await clock.advance(0);
  expect(passed).toEqual([1, 2]);
});

it('opens when the first has waited long enough, and for everybody who comes later', async () => {
  const { clock, passed, come } = waiters(3);
  come(1);
  await clock.advance(1_000);
  expect(passed).toEqual([1]);
  come(2);
  await clock.advance(0);
  expect(passed).toEqual([1, 2]);
});
