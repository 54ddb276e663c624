/** A stream whose silences are told: what lets a relay do its own work while nothing arrives. */
import type { Clock } from '#shared/runtime/clock.ts';

/** Stands for a silence of `idleMs`. */
export const IDLE = 'idle';

export type IdleOptions = { clock: Clock; idleMs: number; signal: AbortSignal };

/** Ends with the source and when `signal` aborts; throws what the source throws. One timer for the whole stream. */
export async function* framesOrIdle<Frame>(
  source: AsyncGenerator<Frame>,
  { clock, idleMs, signal }: IdleOptions,
): AsyncGenerator<Frame | typeof IDLE> {
  type Outcome = IteratorResult<Frame> | typeof IDLE;
  const left = new AbortController();
  const stop = AbortSignal.any([signal, left.signal]);
  let lastMs = clock.monotonicMs();
  let wake: (outcome: Outcome) => void = () => undefined;

  async function breakSilence(): Promise<void> {
    for (;;) {
      await clock.sleep(lastMs + idleMs - clock.monotonicMs(), stop);
      if (clock.monotonicMs() - lastMs < idleMs) continue;
      lastMs = clock.monotonicMs();
      wake(IDLE);
    }
  }

  function outcomeOf(next: Promise<IteratorResult<Frame>>): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      wake = resolve;
      next.then(resolve, reject);
    });
  }

  // It ends by being aborted; whoever waits then is told.
  breakSilence().catch(() => wake(IDLE));
  let next = pull(source);
  try {
    while (!signal.aborted) {
      const outcome = await outcomeOf(next);
      if (signal.aborted) return;
      if (outcome === IDLE) {
        yield IDLE;
        continue;
      }
      if (outcome.done === true) return;
      lastMs = clock.monotonicMs();
      yield outcome.value;
      next = pull(source);
    }
  } finally {
    left.abort();
    // Not awaited: a source that waits for a lost agent would hold up its reader.
    void source.return?.(undefined).catch(() => undefined);
  }
}

/** Its failure is met when it is waited for, or by nobody once the reader has left. */
function pull<Frame>(source: AsyncGenerator<Frame>): Promise<IteratorResult<Frame>> {
  const next = source.next();
  next.catch(() => undefined);
  return next;
}
