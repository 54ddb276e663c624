/**
 * The clock of a simulation. Time stands still while anything can run, and then jumps to the next timer. One timer runs
 * at a time, to its last consequence.
 */
import type { Clock } from '#shared/runtime/clock.ts';
import { createEventHeap } from './event-heap.ts';
import { createGate, type Gate } from './gate.ts';
import { trackOutsideWork } from './outside-work.ts';

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
  /** Moves the wall clock by `ms`, as a fault. The monotonic clock and the timers do not move. */
  jump(ms: number): void;
  /** Total of all jumps, forward and back, in milliseconds. */
  jumpedMs(): number;
  close(): void;
};

/** Starts at `startMs` (milliseconds since the epoch). */
export function createEventClock(startMs: number): EventClock {
  const heap = createEventHeap();
  const gate = createGate();
  const outside = trackOutsideWork();
  let nowMs = startMs;
  let offsetMs = 0;
  let jumpedMs = 0;
  let run = 0;

  /** Times are whole milliseconds, as those of the system clock. */
  const dueAfter = (ms: number): number => Math.ceil(nowMs + Math.max(0, ms));

  /** Resolves when nothing can run without the passing of time. */
  async function settle(): Promise<void> {
    do {
      do await new Promise((resolve) => setImmediate(resolve));
      while (outside.isPending());
    } while (await gate.release());
  }

  /** Runs the earliest timer. Returns false if none is due until `untilMs`. */
  async function runNext(untilMs: number): Promise<boolean> {
    const nextMs = heap.nextMs();
    if (nextMs === null || nextMs > untilMs) return false;
    const timer = heap.take();
    if (timer === null) return false;
    nowMs = Math.max(nowMs, timer.dueMs);
    run += 1;
    timer.run();
    await settle();
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
        const onAbort = () => {
          cancel();
          reject(signal?.reason);
        };
        const cancel = heap.add(dueAfter(ms), () => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        });
        signal?.addEventListener('abort', onAbort, { once: true });
      });
    },
    deadline(ms, parent) {
      const timeout = new AbortController();
      heap.add(dueAfter(ms), () =>
        timeout.abort(new DOMException('the deadline has passed', 'TimeoutError')),
      );
      return parent === undefined ? timeout.signal : AbortSignal.any([timeout.signal, parent]);
    },
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
        // Without timers the work waits for the network, such as a first connection to a server.
        await runNext(Number.POSITIVE_INFINITY);
      }
    },
    timersRun: () => run,
    jump(ms) {
      offsetMs += ms;
      jumpedMs += Math.abs(ms);
    },
    jumpedMs: () => jumpedMs,
    close: () => outside.stop(),
  };
}
