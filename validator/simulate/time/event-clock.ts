/**
 * The clock of a simulation. Time stands still while anything can run, and then jumps to the next timer. One timer runs
 * at a time, to its last consequence.
 */
import type { Clock } from '#shared/runtime/clock.ts';
import { createAbortHooks } from './abort-hooks.ts';
import { deadlineAfter } from './deadline.ts';
import { createEventHeap } from './event-heap.ts';
import { createGate, type Gate } from './gate.ts';
import { trackOutsideWork } from './outside-work.ts';
import { createStandstill } from './standstill.ts';

export type EventClock = Clock & {
  /** Holds the results of databases; see `Gate`. */
  gate: Gate;
  /** Runs every timer until `untilMs`, in milliseconds since the epoch. Stops early if `shouldStop` returns true. */
  runUntil(untilMs: number, shouldStop?: () => boolean): Promise<void>;
  /** Runs timers until the work has ended, and resolves or rejects as the work does. */
  complete<T>(work: Promise<T>): Promise<T>;
  /** Milliseconds since the epoch as if the wall clock had never jumped. Timers are due at such times. */
  steadyMs(): number;
  /** Number of timers that have run. */
  timersRun(): number;
  /** Why time stands still for ever; null if it passes. Then no timer runs any more, and `complete` rejects. */
  standstill(): string | null;
  /** Moves the wall clock by `ms`, as a fault. The monotonic clock and the timers do not move. */
  jump(ms: number): void;
  /** Total of all jumps, forward and back, in milliseconds. */
  jumpedMs(): number;
  close(): void;
};

export type EventClockOptions = {
  /** Number of timers that may be added at one instant and due at once. */
  maxAtOneInstant?: number;
  /** Called once, when time stands still for ever. */
  onStandstill?(problem: string): void;
};

/** Starts at `startMs` (milliseconds since the epoch). */
export function createEventClock(
  startMs: number,
  { maxAtOneInstant, onStandstill }: EventClockOptions = {},
): EventClock {
  const standstill = createStandstill(maxAtOneInstant);
  const heap = createEventHeap();
  const gate = createGate();
  const onAbort = createAbortHooks();
  const outside = trackOutsideWork();
  let nowMs = startMs;
  let offsetMs = 0;
  let jumpedMs = 0;
  let run = 0;

  /** Times are whole milliseconds, as those of the system clock. Returns the function that cancels the timer. */
  function add(ms: number, run: () => void): () => void {
    const dueMs = Math.ceil(nowMs + Math.max(0, ms));
    if (dueMs === nowMs) standstill.note(nowMs);
    return heap.add(dueMs, run);
  }

  /** Resolves when nothing can run without the passing of time. */
  async function settle(): Promise<void> {
    do {
      do await outside.turn();
      while (outside.isPending());
    } while (await releaseAll());
  }

  /**
   * Releases one result after the other, each when the consequences of the previous one have run. Stops at work outside
   * JavaScript. Returns false if there was no result.
   */
  async function releaseAll(): Promise<boolean> {
    let isReleased = false;
    while (await gate.release()) {
      isReleased = true;
      await outside.drain();
      if (outside.isPending()) return true;
    }
    return isReleased;
  }

  /** Runs the earliest timer. Returns false if none is due until `untilMs`. */
  async function runNext(untilMs: number): Promise<boolean> {
    if (standstill.problem() !== null) return false;
    const nextMs = heap.nextMs();
    if (nextMs === null || nextMs > untilMs) return false;
    const timer = heap.take();
    if (timer === null) return false;
    nowMs = Math.max(nowMs, timer.dueMs);
    run += 1;
    timer.run();
    await settle();
    const problem = standstill.problem();
    if (problem !== null) onStandstill?.(problem);
    return true;
  }

  return {
    gate,
    now: () => nowMs + offsetMs,
    steadyMs: () => nowMs,
    monotonicMs: () => nowMs - startMs,
    sleep(ms, signal) {
      return new Promise((resolve, reject) => {
        if (signal?.aborted) {
          reject(signal.reason);
          return;
        }
        let forget: () => void = () => undefined;
        const cancel = add(ms, () => {
          forget();
          resolve();
        });
        if (signal === undefined) return;
        forget = onAbort(signal, () => {
          cancel();
          reject(signal.reason);
        });
      });
    },
    deadline: (ms, parent) => deadlineAfter(add, ms, parent),
    async runUntil(untilMs, shouldStop = () => false) {
      await settle();
      while (!shouldStop() && (await runNext(untilMs))) {
        // `runNext` has done the work.
      }
      if (!shouldStop()) nowMs = Math.max(nowMs, untilMs);
    },
    async complete(work) {
      let isDone = false;
      const end = () => {
        isDone = true;
      };
      work.then(end, end);
      for (;;) {
        await settle();
        if (isDone) return work;
        const problem = standstill.problem();
        if (problem !== null) throw new Error(problem);
        // Without timers the work waits for the network, such as a first connection to a server.
        await runNext(Number.POSITIVE_INFINITY);
      }
    },
    timersRun: () => run,
    standstill: standstill.problem,
    jump(ms) {
      offsetMs += ms;
      jumpedMs += Math.abs(ms);
    },
    jumpedMs: () => jumpedMs,
    close: () => outside.stop(),
  };
}
