/** An answer of the host, or why there is none: facts are judged only when both have their place. */
import { type Clock, withDeadline } from '../runtime/clock.ts';
import { messageOf } from '../runtime/errors.ts';

export type Told<T> = { value: T } | { problem: string };

/** Never rejects: a question that fails, or takes longer than `ms`, is a problem in words. */
export async function tell<T>(
  clock: Clock,
  ms: number,
  question: () => Promise<T>,
): Promise<Told<T>> {
  try {
    return { value: await withDeadline(clock, ms, question()) };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}

/** The answer, or null. */
export function known<T>(told: Told<T>): T | null {
  return 'value' in told ? told.value : null;
}
