import { expect, it } from 'vitest';
import { createManualClock } from '../../../../test/fakes/manual-clock.ts';
import { createPace, LOOK_AT_LEAST_EVERY_MS } from './pace.ts';

function paced(foundInMs: number | null) {
  const clock = createManualClock();
  const pace = createPace(clock);
  const look = (inMs: number | null) => {
    pace.begin();
    pace.end(inMs === null ? null : clock.now() + inMs);
    return pace.pauseMs();
  };
  return {
    clock,
    pace,
    look,
    first: look(foundInMs),
    hear: (inMs: number) => pace.announce(clock.now() + inMs),
  };
}

it.each([
  [null, LOOK_AT_LEAST_EVERY_MS],
  [1_000, 1_000],
  [-5, 0],
  [1_000_000, LOOK_AT_LEAST_EVERY_MS],
])('if the earliest row is due in %s ms, the next poll follows after %i ms', (inMs, pauseMs) => {
  expect(paced(inMs).first).toBe(pauseMs);
});

it('polls earlier than planned for an announced row that is due before the planned poll, but not for a row that is due after it', () => {
  const { hear } = paced(1_000);
  expect(hear(999)).toBe(true);
  expect(hear(1_000)).toBe(false);
});

it('polls for an uncommitted row at growing intervals', async () => {
  const { clock, look, hear } = paced(null);
  hear(0);
  const pauses: number[] = [];
  for (let pauseMs = look(null); pauseMs < LOOK_AT_LEAST_EVERY_MS; pauseMs = look(null)) {
    pauses.push(pauseMs);
    await clock.advance(pauseMs);
  }
  expect(pauses.slice(0, 5)).toEqual([10, 10, 20, 40, 80]);
  expect(pauses.length).toBeLessThan(15);
});

it('uses the longest pause after a failed poll', () => {
  const { pace } = paced(-5);
  pace.begin();
  expect(pace.pauseMs()).toBe(LOOK_AT_LEAST_EVERY_MS);
});
