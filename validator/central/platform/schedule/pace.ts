/** When the schedule looks again: at the earliest row's time, and soon after word of an earlier one. Touches no database. */
import type { Clock } from '#shared/runtime/clock.ts';

/** Rows that another process set and left, and jumps of the wall clock, are found so late at most. */
export const LOOK_AT_LEAST_EVERY_MS = 10_000;
/** Word of a row comes before its commit: looks go on at growing pauses, for a commit that takes long. */
const FIRST_PAUSE_MS = 10;
/** Of rows that are due soon; without the rest they are found as late as those of another process. */
const MAX_HEARD = 100;

export type Pace = ReturnType<typeof createPace>;

/** `dueAtMs` by the wall clock, `sinceMs` by the other. */
type Heard = { dueAtMs: number; sinceMs: number };

export function createPace(clock: Pick<Clock, 'now' | 'monotonicMs'>) {
  /** The earliest row of the last look, wall clock; null without any. */
  let earliestMs: number | null = null;
  let heard: Heard[] = [];
  /** When the next look comes by itself, wall clock; null during a look. */
  let plannedMs: number | null = null;

  /** As long as it has been since the word, so that the pauses double. */
  const pauseFor = ({ dueAtMs, sinceMs }: Heard) =>
    Math.max(dueAtMs - clock.now(), clock.monotonicMs() - sinceMs, FIRST_PAUSE_MS);

  return {
    /** A look begins; until it ends well nothing is known. */
    begin(): void {
      plannedMs = null;
      earliestMs = null;
      const sinceMs = clock.monotonicMs() - LOOK_AT_LEAST_EVERY_MS;
      heard = heard.filter((word) => word.sinceMs > sinceMs);
    },

    /** A look has ended; `foundMs` is the earliest row's time. */
    end(foundMs: number | null): void {
      earliestMs = foundMs;
    },

    /** Word of a row; whether a look that waits is to come earlier for it. */
    hear(dueAtMs: number): boolean {
      // Those that are due later are found in time by the looks that come anyway.
      if (dueAtMs - clock.now() < LOOK_AT_LEAST_EVERY_MS) {
        heard = [...heard.slice(1 - MAX_HEARD), { dueAtMs, sinceMs: clock.monotonicMs() }];
      }
      return plannedMs === null || dueAtMs < plannedMs;
    },

    /** Until the next look. */
    pauseMs(): number {
      const nowMs = clock.now();
      const toEarliest = earliestMs === null ? LOOK_AT_LEAST_EVERY_MS : earliestMs - nowMs;
      const waits = [LOOK_AT_LEAST_EVERY_MS, toEarliest, ...heard.map(pauseFor)];
      const pauseMs = Math.max(0, Math.min(...waits));
      plannedMs = nowMs + pauseMs;
      return pauseMs;
    },
  };
}
