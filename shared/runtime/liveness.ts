import type { Clock } from './clock.ts';

/** Whether a process that runs also works: what is looked at, and what counts as ill. Pure. */

export type Vitals = {
  /** Since the loop last ended a turn, whatever came of it; of several, the one that has been longest at it. */
  sinceTurnMs: number;
  /** Which one that is; absent where there is but one. */
  loop?: string;
  /** Why the store could not be written or read; null while it can. */
  storeProblem: string | null;
  /** `away` is known: a restart of ours brings no engine back. */
  engine: 'answers' | 'away' | 'unused';
};

export type VitalBounds = {
  /** Each loop ends a turn at least this often, also on a bad day. */
  turnWithinMs: number;
};

/** Timers that fire later than this mean that requests wait as long. */
export const MAX_LAG_MS = 2_000;

/**
 * Why a restart would help, in words; null while there is no reason for one. `lagMs`: how late our own timer
 * fired. A loop that waits for an engine that is away is not stuck.
 */
export function ailmentOf(
  { sinceTurnMs, loop = 'main', storeProblem, engine }: Vitals,
  lagMs: number,
  { turnWithinMs }: VitalBounds,
): string | null {
  if (lagMs >= MAX_LAG_MS) return `the event loop lags by ${Math.round(lagMs)} ms`;
  if (storeProblem !== null) return `the store does not work: ${storeProblem}`;
  if (sinceTurnMs > turnWithinMs && engine !== 'away') {
    return `the ${loop} loop has not ended a turn for ${Math.round(sinceTurnMs / 1000)} s`;
  }
  return null;
}

/** What a service manager shows of a process that is not ill. */
export function standingOf({ engine }: Vitals): string {
  return engine === 'away' ? 'serving; the Docker engine does not answer' : 'serving';
}

// MERGED shared/runtime/liveness.ts: When a loop last ended a turn.
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
