/** When a loop last ended a turn. */
import type { Clock } from '../clock.ts';

export type Turns = {
  /** `turn`, noted when it has ended, however it did. */
  noted<T>(turn: () => Promise<T>): Promise<T>;
  /** Milliseconds since the last one, or since the beginning. */
  sinceMs(): number;
};

/** The beginning counts as a turn. */
export function createTurns(clock: Clock): Turns {
  let endedMs = clock.monotonicMs();
  return {
    async noted(turn) {
      try {
        return await turn();
      } finally {
        endedMs = clock.monotonicMs();
      }
    },
    sinceMs: () => clock.monotonicMs() - endedMs,
  };
}
