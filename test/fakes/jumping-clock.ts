/** A clock whose wall time a test can set ahead of the right time; its monotonic time stays right. */
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
