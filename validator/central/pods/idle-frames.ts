/** A stream whose silences are told: what lets a relay do its own work while nothing arrives. */
import type { Clock } from '#shared/clock.ts';

/** Stands for a silence of `idleMs`. */
export const IDLE = 'idle';

export type IdleOptions = { clock: Clock; idleMs: number; signal: AbortSignal };

/** Ends with the source, when the source fails, and when `signal` aborts; it never throws. */
export async function* framesOrIdle<Frame>(
  source: AsyncGenerator<Frame>,
  { clock, idleMs, signal }: IdleOptions,
): AsyncGenerator<Frame | typeof IDLE> {
  const failed = { done: true as const, value: undefined };
  const pull = () => source.next().catch(() => failed);
  let next = pull();
  try {
    while (!signal.aborted) {
      const waited = new AbortController();
      const silence = clock.sleep(idleMs, AbortSignal.any([waited.signal, signal])).then(
        () => IDLE as typeof IDLE,
        () => failed,
      );
      const first = await Promise.race([next, silence]);
      waited.abort();
      if (first === IDLE) {
        yield IDLE;
      } else if (first.done === true) {
        return;
      } else {
        yield first.value;
        next = pull();
      }
    }
  } finally {
    // Not awaited: a source that waits for a lost agent would hold up its reader.
    void source.return?.(undefined).catch(() => undefined);
  }
}
