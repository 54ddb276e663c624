/** Periodic work: one run at a time, a pause between runs, `wake` to skip the pause, `stop` to end it. */
import type { Clock } from './clock.ts';

export type Loop = {
  /** Runs again at once, or when the current run ends. Any number of wakes during a run count as one. */
  wake(): void;
  /** Aborts the pause and the signal passed to `run`. Resolves when the current run has ended. */
  stop(): Promise<void>;
};

export type LoopOptions = {
  clock: Clock;
  /**
   * Pause between the end of a run and the start of the next. A function is called after every run and returns the
   * pause.
   */
  intervalMs: number | (() => number);
  run(signal: AbortSignal): Promise<void>;
  /** Called for every rejection of `run`; the loop continues. */
  onError(error: unknown): void;
};

/** Runs every step in order, even if earlier ones fail. Throws an AggregateError of all failures at the end. */
export async function runEach(steps: readonly (() => Promise<unknown>)[]): Promise<void> {
  const errors: unknown[] = [];
  for (const step of steps) await step().catch((error: unknown) => errors.push(error));
  if (errors.length > 0) throw new AggregateError(errors, `${errors.length} steps failed`);
}

/** A reason, because the default is an error with a stack, which takes longer than the wake. */
const WOKEN = 'woken';

/** Starts the loop; the first run begins at once. */
export function startLoop({ clock, intervalMs, run, onError }: LoopOptions): Loop {
  const stopping = new AbortController();
  let woken = false;
  let waiting: AbortController | null = null;

  async function pause(): Promise<void> {
    if (woken || stopping.signal.aborted) return;
    waiting = new AbortController();
    const pauseMs = typeof intervalMs === 'number' ? intervalMs : intervalMs();
    await clock.sleep(pauseMs, waiting.signal).catch(() => undefined);
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
      waiting?.abort(WOKEN);
    },
    async stop() {
      stopping.abort();
      waiting?.abort(WOKEN);
      await ended;
    },
  };
}
