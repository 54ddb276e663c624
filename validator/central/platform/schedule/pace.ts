/**
 * Decides when the schedule polls again: when the earliest row is due, and soon after a notification about a row that
 * is due earlier.
 */
import type { Clock } from '#shared/runtime/clock.ts';

/**
 * Maximum time between polls. It limits the delay after a jump of the wall clock, and the delay of rows that a process
 * announced before it ended.
 */
export const LOOK_AT_LEAST_EVERY_MS = 10_000;
/**
 * First pause after an announcement. A row is announced before its transaction commits. Polling therefore continues
 * with growing pauses until a slow commit is visible.
 */
const FIRST_PAUSE_MS = 10;
/** Maximum number of announced rows in memory. The regular polls find further rows. */
const MAX_ANNOUNCED = 100;

export type Pace = ReturnType<typeof createPace>;

/** `dueAtMs` is wall clock time; `sinceMs` is monotonic time. */
type Announced = { dueAtMs: number; sinceMs: number };

/** `atLeastEveryMs`: maximum time between two polls. */
export function createPace(
  clock: Pick<Clock, 'now' | 'monotonicMs'>,
  atLeastEveryMs = LOOK_AT_LEAST_EVERY_MS,
) {
  /** Due time of the earliest row that the last poll found, in wall clock time; null if there was no row. */
  let earliestMs: number | null = null;
  let announced: Announced[] = [];
  /** Time of the next poll, in wall clock time; null during a poll. */
  let plannedMs: number | null = null;

  /**
   * Returns a pause that equals the time since the announcement, so that each pause is twice as long as the previous
   * one.
   */
  const pauseFor = ({ dueAtMs, sinceMs }: Announced) =>
    Math.max(dueAtMs - clock.now(), clock.monotonicMs() - sinceMs, FIRST_PAUSE_MS);

  return {
    /** Must be called when a poll starts. */
    begin(): void {
      plannedMs = null;
      earliestMs = null;
      const sinceMs = clock.monotonicMs() - atLeastEveryMs;
      announced = announced.filter((row) => row.sinceMs > sinceMs);
    },

    /** Must be called when a poll has succeeded. `foundMs` is the due time of the earliest row. */
    end(foundMs: number | null): void {
      earliestMs = foundMs;
    },

    /** Records an announced row. Returns true if the next poll must be earlier than planned. */
    announce(dueAtMs: number): boolean {
      // The regular polls find rows that are due after the planned poll.
      if (dueAtMs - clock.now() < atLeastEveryMs) {
        announced = [
          ...announced.slice(1 - MAX_ANNOUNCED),
          { dueAtMs, sinceMs: clock.monotonicMs() },
        ];
      }
      return plannedMs === null || dueAtMs < plannedMs;
    },

    /** Returns the pause until the next poll. */
    pauseMs(): number {
      const nowMs = clock.now();
      const toEarliest = earliestMs === null ? atLeastEveryMs : earliestMs - nowMs;
      const waits = [atLeastEveryMs, toEarliest, ...announced.map(pauseFor)];
      const pauseMs = Math.max(0, Math.min(...waits));
      plannedMs = nowMs + pauseMs;
      return pauseMs;
    },
  };
}
