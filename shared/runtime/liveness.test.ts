import { expect, it } from 'vitest';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import {
  createHeartbeat,
  type Liveness,
  livenessProblem,
  livenessStatus,
  MAX_LAG_MS,
  oldestHeartbeat,
} from './liveness.ts';

const HEALTHY: Liveness = { heartbeatAgeMs: 60_000, storeProblem: null, engine: 'answers' };
const limits = { maxHeartbeatAgeMs: 60_000 };

it('reports no problem within the limits, and the problem beyond them', () => {
  expect(livenessProblem(HEALTHY, MAX_LAG_MS - 1, limits)).toBeNull();
  expect(livenessProblem(HEALTHY, MAX_LAG_MS, limits)).toBe('the event loop lags by 2000 ms');
  expect(livenessProblem({ ...HEALTHY, storeProblem: 'gone' }, 0, limits)).toMatch(/store.*gone/);
  expect(livenessProblem({ ...HEALTHY, heartbeatAgeMs: 60_001 }, 0, limits)).toMatch(
    /main loop.*60 s/,
  );
});

it('does not report an unreachable engine, or a loop that waits for it', () => {
  const away: Liveness = { ...HEALTHY, engine: 'away', heartbeatAgeMs: 600_000 };
  expect(livenessProblem(away, 0, limits)).toBeNull();
  expect(livenessStatus(away)).toBe('serving; the Docker engine does not answer');
  expect(livenessProblem({ ...away, engine: 'unused' }, 0, limits)).not.toBeNull();
});

it('names the loop with the oldest heartbeat, and counts failed iterations as heartbeats', async () => {
  const clock = createManualClock();
  const loops = { check: createHeartbeat(clock), line: createHeartbeat(clock) };
  await clock.advance(1_000);
  await loops.check.beatAfter(async () => undefined);
  expect(oldestHeartbeat(loops)).toEqual({ loop: 'line', heartbeatAgeMs: 1_000 });
  const liveness = { ...oldestHeartbeat(loops), storeProblem: null, engine: 'unused' as const };
  expect(livenessProblem(liveness, 0, { maxHeartbeatAgeMs: 999 })).toMatch(
    /^the line loop has had no heartbeat/,
  );
  const failed = loops.line.beatAfter(() => Promise.reject(new Error('no line')));
  await expect(failed).rejects.toThrow('no line');
  await clock.advance(5);
  expect(oldestHeartbeat(loops).heartbeatAgeMs).toBe(5);
});
