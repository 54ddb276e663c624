/**
 * Decides when the schedule polls again: when the earliest row is due, and soon after the notification of an earlier
 * one.
 */
import type { Clock } from '#shared/runtime/clock.ts';

/**
 * Maximum time between polls. It limits the delay after a jump of the wall clock, and of rows that a process announced
 * before it ended.
 */
export const LOOK_AT_LEAST_EVERY_MS = 10_000;
/**
 * First pause after an announcement. A row is announced before its commit, so polling continues at growing pauses,
 * until a slow commit is visible.
 */
const FIRST_PAUSE_MS = 10;
/** Maximum number of announced rows that are remembered. The regular polls find the others. */
const MAX_ANNOUNCED = 100;

export type Pace = ReturnType<typeof createPace>;

/** `dueAtMs` is wall clock time, `sinceMs` monotonic time. */
type Announced = { dueAtMs: number; sinceMs: number };

export function createPace(clock: Pick<Clock, 'now' | 'monotonicMs'>) {
  /** Due time of the earliest row that the last poll found, wall clock; null if there was none. */
  let earliestMs: number | null = null;
  let announced: Announced[] = [];
  /** Time of the next poll, wall clock; null during a poll. */
  let plannedMs: number | null = null;

  /** The pause equals the time since the announcement, so that the pauses double. */
  const pauseFor = ({ dueAtMs, sinceMs }: Announced) =>
    Math.max(dueAtMs - clock.now(), clock.monotonicMs() - sinceMs, FIRST_PAUSE_MS);

  return {
    /** Call it when a poll begins. */
    begin(): void {
      plannedMs = null;
      earliestMs = null;
      const sinceMs = clock.monotonicMs() - LOOK_AT_LEAST_EVERY_MS;
      announced = announced.filter((row) => row.sinceMs > sinceMs);
    },

    /** Call it when a poll has succeeded; `foundMs` is the due time of the earliest row. */
    end(foundMs: number | null): void {
      earliestMs = foundMs;
    },

    /** Records an announced row. Returns true if the next poll must be earlier than planned. */
    announce(dueAtMs: number): boolean {
      // The regular polls find rows that are due later in time.
      if (dueAtMs - clock.now() < LOOK_AT_LEAST_EVERY_MS) {
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
      const toEarliest = earliestMs === null ? LOOK_AT_LEAST_EVERY_MS : earliestMs - nowMs;
      const waits = [LOOK_AT_LEAST_EVERY_MS, toEarliest, ...announced.map(pauseFor)];
      const pauseMs = Math.max(0, Math.min(...waits));
      plannedMs = nowMs + pauseMs;
      return pauseMs;
    },
  };
}
