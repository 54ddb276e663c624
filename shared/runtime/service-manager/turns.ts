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

/** Of several loops the one that has been longest at a turn, by its name. */
export function slowestOf(loops: Readonly<Record<string, Turns>>): {
  loop: string;
  sinceTurnMs: number;
} {
  const [first = { loop: 'main', sinceTurnMs: 0 }] = Object.entries(loops)
    .map(([loop, turns]) => ({ loop, sinceTurnMs: turns.sinceMs() }))
    .toSorted((a, b) => b.sinceTurnMs - a.sinceTurnMs);
  return first;
}
