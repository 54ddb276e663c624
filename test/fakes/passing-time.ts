/** Time that passes by itself, for streams and pages that wait for the clock of a marketplace in memory. */
import { systemClock } from '#shared/runtime/clock.ts';
import type { ManualClock } from './manual-clock.ts';

const TICK_MS = 20;

/** Advances the clock as fast as the host's; returns the function that ends this. */
export function letTimePass(clock: ManualClock): () => void {
  let isEnded = false;
  const pass = async () => {
    for (let beforeMs = systemClock.monotonicMs(); !isEnded; ) {
      await systemClock.sleep(TICK_MS);
      // Whole milliseconds, as all times of the database are.
      const elapsedMs = Math.floor(systemClock.monotonicMs() - beforeMs);
      await clock.advance(elapsedMs);
      beforeMs += elapsedMs;
    }
  };
  void pass();
  return () => {
    isEnded = true;
  };
}
