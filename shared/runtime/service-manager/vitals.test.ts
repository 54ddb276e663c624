import { expect, it } from 'vitest';
import { ailmentOf, MAX_LAG_MS, standingOf, type Vitals } from './vitals.ts';

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
