/** When the schedule polls again: at the earliest row's time, and soon after a notification of an earlier one. */
import type { Clock } from '#shared/runtime/clock.ts';

/** Maximum delay for rows of a process that has ended, and after a jump of the wall clock. */
export const LOOK_AT_LEAST_EVERY_MS = 10_000;
/** A row is announced before its commit: polling continues at growing pauses until a slow commit is visible. */
const FIRST_PAUSE_MS = 10;
/** Announced rows that are remembered. Others are found by the regular polls. */
const MAX_ANNOUNCED = 100;

export type Pace = ReturnType<typeof createPace>;

/** `dueAtMs` is wall clock time, `sinceMs` monotonic time. */
type Announced = { dueAtMs: number; sinceMs: number };

export function createPace(clock: Pick<Clock, 'now' | 'monotonicMs'>) {
  /** Time of the earliest row at the last poll, wall clock; null if there was none. */
  let earliestMs: number | null = null;
  let announced: Announced[] = [];
  /** Time of the next poll, wall clock; null during a poll. */
  let plannedMs: number | null = null;

  /** As long as the time since the announcement, so that the pauses double. */
  const pauseFor = ({ dueAtMs, sinceMs }: Announced) =>
    Math.max(dueAtMs - clock.now(), clock.monotonicMs() - sinceMs, FIRST_PAUSE_MS);

  return {
    /** A poll begins. */
    begin(): void {
      plannedMs = null;
      earliestMs = null;
      const sinceMs = clock.monotonicMs() - LOOK_AT_LEAST_EVERY_MS;
      announced = announced.filter((row) => row.sinceMs > sinceMs);
    },

    /** A poll has succeeded; `foundMs` is the earliest row's time. */
    end(foundMs: number | null): void {
      earliestMs = foundMs;
    },

    /** A row was announced. Returns true if the next poll must be earlier. */
    announce(dueAtMs: number): boolean {
      // Rows that are due later are found in time by the regular polls.
      if (dueAtMs - clock.now() < LOOK_AT_LEAST_EVERY_MS) {
        announced = [
          ...announced.slice(1 - MAX_ANNOUNCED),
          { dueAtMs, sinceMs: clock.monotonicMs() },
        ];
      }
      return plannedMs === null || dueAtMs < plannedMs;
    },

    /** Pause until the next poll. */
    pauseMs(): number {
      const nowMs = clock.now();
      const toEarliest = earliestMs === null ? LOOK_AT_LEAST_EVERY_MS : earliestMs - nowMs;
      const waits = [LOOK_AT_LEAST_EVERY_MS, toEarliest, ...announced.map(pauseFor)];
      const pauseMs = Math.max(0, Math.min(...waits));
      plannedMs = nowMs + pauseMs;
      return pauseMs;
    },
  };
}
