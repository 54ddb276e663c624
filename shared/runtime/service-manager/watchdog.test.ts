import { afterEach, expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { createManualClock, type ManualClock } from '../../../test/fakes/manual-clock.ts';
import type { Vitals } from './vitals.ts';
import { LOOK_WITHIN_MS, startWatchdog } from './watchdog.ts';

const log = createLog({ name: 'test', level: 'silent' });
const WELL: Vitals = { sinceTurnMs: 0, storeProblem: null, engine: 'unused' };
const bounds = { turnWithinMs: 1_000 };
const THIRD_MS = 10_000;

let watchdog: { stop(): Promise<void> };
afterEach(() => watchdog.stop());

/** What was told so far, `fed` for each feeding. */
function watchedBy(clock: ManualClock, look: () => Promise<Vitals>): string[] {
  const told: string[] = [];
  watchdog = startWatchdog({
    watch: { look, bounds },
    intervalMs: THIRD_MS,
    tell: async ([first = '']) => {
      told.push(first === 'WATCHDOG=1' ? 'fed' : first);
    },
    clock,
    log,
  });
  return told;
}

it('feeds at its interval, looks again soon while ill, and feeds as soon as that has passed', async () => {
  const clock = createManualClock();
  let vitals = WELL;
  const told = watchedBy(clock, async () => vitals);
  await clock.advance(2 * THIRD_MS);
  expect(told).toEqual(['fed', 'fed']);
  vitals = { ...WELL, storeProblem: 'gone' };
  await clock.advance(THIRD_MS + 2_000);
  expect(told.slice(2)).toEqual(Array(3).fill('STATUS=the store does not work: gone'));
  vitals = WELL;
  await clock.advance(1_000);
  expect(told.at(-1)).toBe('fed');
});

it('takes a look that never ends, or fails, for an ailment', async () => {
  const clock = createManualClock();
  let look = (): Promise<Vitals> => new Promise(() => undefined);
  const told = watchedBy(clock, () => look());
  await clock.advance(THIRD_MS + LOOK_WITHIN_MS);
  expect(told).toEqual(['STATUS=it could not be looked at: no answer within 8000 ms']);
  look = () => Promise.reject(new Error('broken'));
  await clock.advance(1_000);
  expect(told.at(-1)).toBe('STATUS=it could not be looked at: broken');
});

it('holds the feed back while its own timers come late', async () => {
  const clock = createManualClock();
  let lateMs = 5_000;
  const told = watchedBy(
    { ...clock, sleep: (ms, signal) => clock.sleep(ms + lateMs, signal) },
    async () => WELL,
  );
  await clock.advance(THIRD_MS + lateMs);
  expect(told).toEqual(['STATUS=the event loop lags by 5000 ms']);
  lateMs = 0;
  await clock.advance(6_000);
  await clock.advance(1_000);
  expect(told.at(-1)).toBe('fed');
});
