/** Waiting no longer than so long, for work that cannot be told to stop. */
import type { Clock } from './clock.ts';

/** The work was not done in time; it may still be going on. */
export class DeadlineError extends Error {
  override name = 'DeadlineError';
}

/**
 * The outcome of `work`, or a DeadlineError after `ms`. Late outcomes are dropped, rejections included.
 * Where work takes an AbortSignal, give it `clock.deadline` instead: that ends it.
 */
export async function withDeadline<T>(clock: Clock, ms: number, work: Promise<T>): Promise<T> {
  const done = new AbortController();
  const late = clock.sleep(ms, done.signal).then(() => {
    throw new DeadlineError(`no answer within ${ms} ms`);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    // Whichever lost may still reject, with nobody waiting for it.
    late.catch(() => undefined);
    work.catch(() => undefined);
    done.abort();
  }
}
