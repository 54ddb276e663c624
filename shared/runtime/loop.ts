/** Periodic work at its own pace: one run at a time, woken early by `wake`, stopped cleanly by `stop`. */
import type { Clock } from './clock.ts';

export type Loop = {
  /** Runs again as soon as the present run has ended. Any number of wakes during a run count as one. */
  wake(): void;
  /** Aborts the wait and the signal given to `run`; resolves when the present run has ended. */
  stop(): Promise<void>;
};

export type LoopOptions = {
  clock: Clock;
  /** Pause between the end of one run and the start of the next; asked anew after each run where it varies. */
  intervalMs: number | (() => number);
  run(signal: AbortSignal): Promise<void>;
  /** Every failure of `run` arrives here; the loop goes on. */
  onError(error: unknown): void;
};

/** Takes every step, one after the other, whatever becomes of those before; then throws what failed. */
export async function runEach(steps: readonly (() => Promise<unknown>)[]): Promise<void> {
  const errors: unknown[] = [];
  for (const step of steps) await step().catch((error: unknown) => errors.push(error));
  if (errors.length > 0) throw new AggregateError(errors, `${errors.length} steps failed`);
}

/** Starts with a run at once. */
export function startLoop({ clock, intervalMs, run, onError }: LoopOptions): Loop {
  const stopping = new AbortController();
  let woken = false;
  let waiting: AbortController | null = null;

  async function pause(): Promise<void> {
    if (woken) return;
    waiting = new AbortController();
    const pauseMs = typeof intervalMs === 'number' ? intervalMs : intervalMs();
    await clock
      .sleep(pauseMs, AbortSignal.any([waiting.signal, stopping.signal]))
      .catch(() => undefined);
    waiting = null;
  }

  async function repeat(): Promise<void> {
    while (!stopping.signal.aborted) {
      woken = false;
      try {
        await run(stopping.signal);
      } catch (error) {
        if (!stopping.signal.aborted) onError(error);
      }
      await pause();
    }
  }

  const ended = repeat();
  return {
    wake() {
      woken = true;
      waiting?.abort();
    },
    async stop() {
      stopping.abort();
      await ended;
    },
  };
}
