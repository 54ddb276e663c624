/** Facts that may be unavailable. A check receives either the value or the reason why there is none. */
import { type Clock, withDeadline } from '../runtime/clock.ts';
import { messageOf } from '../runtime/errors.ts';

export type Observed<T> = { value: T } | { problem: string };

/** Runs `work` for at most `ms` milliseconds. Never rejects: an error or a timeout becomes `problem`. */
export async function observe<T>(
  clock: Clock,
  ms: number,
  work: () => Promise<T>,
): Promise<Observed<T>> {
  try {
    return { value: await withDeadline(clock, ms, work()) };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}

export function valueOrNull<T>(observed: Observed<T>): T | null {
  return 'value' in observed ? observed.value : null;
}
