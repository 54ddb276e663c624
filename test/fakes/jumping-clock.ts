/** A host whose wall clock a test can set apart from the time that passes. */
import { createManualClock } from './manual-clock.ts';

export type JumpingClock = ReturnType<typeof createJumpingClock>;

export function createJumpingClock() {
  const passing = createManualClock();
  let offMs = 0;
  return {
    ...passing,
    now: () => passing.now() + offMs,
    /** Sets the wall clock this far ahead of the right time; 0 sets it right. */
    setAhead(ms: number): void {
      offMs = ms;
    },
    /** The right time. */
    rightMs: passing.now,
  };
}
