/**
 * Drives the clock of a simulated marketplace for people. While it is paused, requests from outside are served at the
 * standing time. An advance runs one timer after the other, and requests may arrive between them.
 */
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { EventClock } from '../time/event-clock.ts';
import {
  afterStep,
  type ClockMode,
  type ClockStatus,
  endOfStep,
  PAUSED,
  statusOf,
} from './clock-plan.ts';

export type DriverParts = {
  clock: Pick<EventClock, 'runUntil' | 'steadyMs' | 'now'>;
  /** The clock of the host. */
  real: Pick<Clock, 'monotonicMs' | 'sleep'>;
  /** Returns false while no process of the central API runs. */
  isReachable(): boolean;
  /** Returns true from the first violation of an invariant, which pauses the clock once. */
  hasFailed(): boolean;
};

export type DriverState = ClockMode & { status: ClockStatus };

export type Driver = {
  state(): DriverState;
  /**
   * Milliseconds by which faults have moved the wall clock since the advance before the present or last one ended;
   * negative for back.
   */
  jumpMs(): number;
  /** Begins to run timers for `ms` simulated milliseconds. Throws `conflict` during an advance. */
  advance(ms: number): void;
  /** Stops the clock after the present timer, and cancels an advance. */
  pause(): void;
  /** Lets time pass at `speed` simulated seconds per second. Throws `conflict` during an advance. */
  run(speed: number): void;
  /** Rejects with the error of a timer. Resolves after `stop`. */
  ended: Promise<void>;
  stop(): Promise<void>;
};

/**
 * Real pause between two steps. Bounds the delay of requests from outside, whose results of the database a step
 * delivers.
 */
const STEP_MS = 5;

export function startDriver({ clock, real, isReachable, hasFailed }: DriverParts): Driver {
  let mode = PAUSED;
  let isInterrupted = false;
  let isStopping = false;
  let isFailureHandled = false;
  /** Milliseconds that the wall clock is ahead of the timers because of jumps. */
  const aheadMs = () => clock.now() - clock.steadyMs();
  /** `aheadMs` at the end of the advance before the present or last one, and at the end of the last one. */
  let beforeMs = aheadMs();
  let afterMs = beforeMs;

  function change(next: ClockMode): void {
    if (mode.targetMs !== null) afterMs = aheadMs();
    mode = next;
    isInterrupted = true;
  }

  function refuseDuringAdvance(): void {
    if (mode.targetMs === null) return;
    throw new ApiError('conflict', 'The clock advances already', {
      hint: 'Wait until GET /_local/clock returns another status than advancing, or pause the clock.',
    });
  }

  function pauseAtFailure(): void {
    if (isFailureHandled || !hasFailed()) return;
    isFailureHandled = true;
    change(PAUSED);
  }

  async function drive(): Promise<void> {
    let sinceMs = real.monotonicMs();
    while (!isStopping) {
      // Whole milliseconds, so that no part of a millisecond is lost.
      const elapsedMs = Math.floor(real.monotonicMs() - sinceMs);
      sinceMs += elapsedMs;
      isInterrupted = false;
      const wasReachable = isReachable();
      const moment = { nowMs: clock.steadyMs(), elapsedMs, isReachable: wasReachable };
      await clock.runUntil(endOfStep(mode, moment), () => {
        pauseAtFailure();
        const isBack = !wasReachable && mode.targetMs === null && isReachable();
        return isInterrupted || isStopping || isBack;
      });
      if (mode.targetMs !== null) afterMs = aheadMs();
      if (!isInterrupted) mode = afterStep(mode, clock.steadyMs());
      await real.sleep(STEP_MS);
    }
  }

  const ended = drive();
  // The owner handles the rejection through `ended`.
  ended.catch(() => undefined);
  return {
    state: () => ({ ...mode, status: statusOf(mode, { isReachable: isReachable() }) }),
    advance(ms) {
      refuseDuringAdvance();
      beforeMs = afterMs;
      change({ ...mode, targetMs: clock.steadyMs() + ms });
    },
    jumpMs: () => aheadMs() - beforeMs,
    pause: () => change(PAUSED),
    run(speed) {
      refuseDuringAdvance();
      change({ speed, targetMs: null });
    },
    ended,
    async stop() {
      isStopping = true;
      await ended.catch(() => undefined);
    },
  };
}
