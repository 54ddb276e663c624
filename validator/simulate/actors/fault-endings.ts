/** Faults that last, each of which a person can end before its time. */
import type { Clock } from '#shared/runtime/clock.ts';

export type FaultEndings = {
  /**
   * Waits until the repair of a fault: until `lastsMs` have passed, or `end`. `number`: number of the event that began
   * the fault. Rejects when `signal` aborts.
   */
  during(number: number, lastsMs: number, signal: AbortSignal): Promise<void>;
  /** Ends a fault now. Returns false if none that lasts has this number. */
  end(number: number): boolean;
};

export function createFaultEndings({ sleep }: Pick<Clock, 'sleep'>): FaultEndings {
  const lasting = new Map<number, AbortController>();
  return {
    async during(number, lastsMs, signal) {
      signal.throwIfAborted();
      const ending = new AbortController();
      const stop = () => ending.abort();
      signal.addEventListener('abort', stop);
      lasting.set(number, ending);
      try {
        await sleep(lastsMs, ending.signal);
      } catch (error) {
        if (!ending.signal.aborted) throw error;
        signal.throwIfAborted();
      } finally {
        signal.removeEventListener('abort', stop);
        lasting.delete(number);
      }
    },
    end(number) {
      const ending = lasting.get(number);
      ending?.abort();
      return ending !== undefined;
    },
  };
}
