/** Which lines of a repeated reading were sent before. Pure. */
import type { LogPosition } from './log-frames.ts';

export type ResumeFilter = {
  /** `gap`: the place to resume from is gone, and this is the first line after it. */
  judge(at: LogPosition): 'send' | 'drop' | 'gap';
};

/**
 * Drops lines up to the one at `after`. It goes by place rather than by time alone, because the engine
 * writes two streams into one file and their times may cross by a little.
 */
export function createResumeFilter(after: LogPosition | null): ResumeFilter {
  let passed = after === null;
  return {
    judge(at) {
      if (after === null || (passed && (at.ns !== after.ns || at.seq !== after.seq))) return 'send';
      if (at.ns === after.ns && at.seq === after.seq) {
        passed = true;
        return 'drop';
      }
      if (at.ns <= after.ns) return 'drop';
      passed = true;
      return 'gap';
    },
  };
}

/** Where a reading has to begin so that the line at `after` is in it. */
export function readingStartMs(after: LogPosition): number {
  return Math.max(0, Number(after.ns / 1_000_000n) - SLACK_MS);
}

/** More than the times of two streams ever cross. */
const SLACK_MS = 1_000;
