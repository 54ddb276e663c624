import { expect, it } from 'vitest';
import { createManualClock } from '../../../test/fakes/manual-clock.ts';
import { createTurns, slowestOf } from './turns.ts';
import { ailmentOf } from './vitals.ts';

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
