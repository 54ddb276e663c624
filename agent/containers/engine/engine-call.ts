/** Wraps calls of the engine with a deadline, a schema for the response, and EngineError for every failure. */
import type { z } from 'zod';
import type { Clock } from '#shared/runtime/clock.ts';
import { EngineError } from './engine.ts';
import { toEngineError } from './engine-errors.ts';

/** Deadline of each kind of call in milliseconds. */
export const DEADLINES_MS = {
  inspect: 10_000,
  list: 15_000,
  /** The engine walks all files that the container has written. */
  size: 120_000,
  network: 20_000,
  create: 30_000,
  /** The engine copies the image's files at their path into new volumes. */
  createWithVolumes: 300_000,
  volume: 20_000,
  /** The engine deletes all files in the volume. */
  removeVolume: 300_000,
  start: 60_000,
  /** Added to the container's grace period. */
  stop: 10_000,
  import: 60_000,
  /** Includes the time to read the last byte. */
  copyOut: 600_000,
  /** The engine queries a registry. */
  registry: 60_000,
  /** The engine deletes the files of all layers. */
  removeImage: 300_000,
} as const;

export type EngineCall = ReturnType<typeof createEngineCall>;

/** Creates the function that runs a call. The deadline ends the wait even if the client ignores the signal. */
export function createEngineCall(clock: Clock) {
  return async <T>(
    deadlineMs: number,
    schema: z.ZodType<T>,
    work: (abortSignal: AbortSignal) => Promise<unknown>,
  ): Promise<T> => {
    const signal = clock.deadline(deadlineMs);
    let answer: unknown;
    try {
      answer = await orAborted(work(signal), signal);
    } catch (cause) {
      if (signal.aborted) {
        throw new EngineError('deadline', `no answer within ${deadlineMs} ms`, { cause });
      }
      throw toEngineError(cause);
    }
    const parsed = schema.safeParse(answer);
    if (parsed.success) return parsed.data;
    throw new EngineError('unavailable', 'unexpected response', { cause: parsed.error });
  };
}

/** Settles as `work` does, or rejects with the signal's reason if it aborts first. */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

/** Returns `value` if `work` fails with one of `kinds`, for calls where for example a missing object is success. */
export async function unless<T>(
  kinds: readonly EngineError['kind'][],
  value: T,
  work: Promise<T>,
): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof EngineError && kinds.includes(error.kind)) return value;
    throw error;
  }
}

/** Filter for objects that carry all of `labels`. */
export function labelFilter(labels: Record<string, string>): { label: string[] } {
  return { label: Object.entries(labels).map(([name, value]) => `${name}=${value}`) };
}
