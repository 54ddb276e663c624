import { expect, it } from 'vitest';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import {
  ailmentOf,
  createTurns,
  MAX_LAG_MS,
  slowestOf,
  standingOf,
  type Vitals,
} from './liveness.ts';

const WELL: Vitals = { sinceTurnMs: 60_000, storeProblem: null, engine: 'answers' };
const bounds = { turnWithinMs: 60_000 };

it('finds a process well up to its bounds, and says what is wrong beyond', () => {
  expect(ailmentOf(WELL, MAX_LAG_MS - 1, bounds)).toBeNull();
  expect(ailmentOf(WELL, MAX_LAG_MS, bounds)).toBe('the event loop lags by 2000 ms');
  expect(ailmentOf({ ...WELL, storeProblem: 'gone' }, 0, bounds)).toMatch(/store.*gone/);
  expect(ailmentOf({ ...WELL, sinceTurnMs: 60_001 }, 0, bounds)).toMatch(/main loop.*60 s/);
});

it('takes an engine that is away for no reason to restart, nor a loop that waits for it', () => {
  const away: Vitals = { ...WELL, engine: 'away', sinceTurnMs: 600_000 };
  expect(ailmentOf(away, 0, bounds)).toBeNull();
  expect(standingOf(away)).toBe('serving; the Docker engine does not answer');
  expect(ailmentOf({ ...away, engine: 'unused' }, 0, bounds)).not.toBeNull();
});

it('names the loop of several that has been longest at a turn, however its turns end', async () => {
  const clock = createManualClock();
  const loops = { check: createTurns(clock), line: createTurns(clock) };
  await clock.advance(1_000);
  await loops.check.noted(async () => undefined);
  expect(slowestOf(loops)).toEqual({ loop: 'line', sinceTurnMs: 1_000 });
  const vitals = { ...slowestOf(loops), storeProblem: null, engine: 'unused' as const };
  expect(ailmentOf(vitals, 0, { turnWithinMs: 999 })).toMatch(/^the line loop has not/);
  const failed = loops.line.noted(() => Promise.reject(new Error('no line')));
  await expect(failed).rejects.toThrow('no line');
  await clock.advance(5);
  expect(slowestOf(loops).sinceTurnMs).toBe(5);
});
