/** Waits until a condition holds, without a fixed duration. */
import { systemClock } from '#shared/runtime/clock.ts';

const DEFAULT_TIMEOUT_MS = 45_000;
const POLL_MS = 20;

/** Polls until `look` returns something other than null, undefined or false. Throws after the timeout. */
export async function eventually<T>(
  what: string,
  look: () => T | null | undefined | false | Promise<T | null | undefined | false>,
  timeoutMs = DEFAULT_TIMEOUT_MS,
): Promise<T> {
  const startedMs = systemClock.monotonicMs();
  for (;;) {
    const found = await look();
    if (found !== null && found !== undefined && found !== false) return found;
    if (systemClock.monotonicMs() - startedMs > timeoutMs) {
      throw new Error(`${what}: not within ${timeoutMs} ms`);
    }
    await systemClock.sleep(POLL_MS);
  }
}
