/** A stream whose silences are told: what lets a relay do its own work while nothing arrives. */
import type { Clock } from '#shared/clock.ts';

/** Stands for a silence of `idleMs`. */
export const IDLE = 'idle';

export type IdleOptions = { clock: Clock; idleMs: number; signal: AbortSignal };

/** Ends with the source and when `signal` aborts; throws what the source throws. */
export async function* framesOrIdle<Frame>(
  source: AsyncGenerator<Frame>,
  { clock, idleMs, signal }: IdleOptions,
): AsyncGenerator<Frame | typeof IDLE> {
  let next = pull(source);
  try {
    while (!signal.aborted) {
      const waited = new AbortController();
      const silence = clock.sleep(idleMs, AbortSignal.any([waited.signal, signal])).then(
        () => IDLE as typeof IDLE,
        () => IDLE as typeof IDLE,
      );
      const first = await Promise.race([next, silence]).finally(() => waited.abort());
      if (signal.aborted) return;
      if (first === IDLE) {
        yield IDLE;
      } else if (first.done === true) {
        return;
      } else {
        yield first.value;
        next = pull(source);
      }
    }
  } finally {
    // Not awaited: a source that waits for a lost agent would hold up its reader.
    void source.return?.(undefined).catch(() => undefined);
  }
}

/** Its failure is met when it is raced, or by nobody once the reader has left. */
function pull<Frame>(source: AsyncGenerator<Frame>): Promise<IteratorResult<Frame>> {
  const next = source.next();
  next.catch(() => undefined);
  return next;
}
