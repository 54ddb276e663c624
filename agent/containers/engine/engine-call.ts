/** One call of the engine: a deadline, the answer parsed by a schema, every failure an EngineError. */
import type { z } from 'zod';
import type { Clock } from '#shared/runtime/clock.ts';
import { EngineError } from './engine.ts';
import { toEngineError } from './engine-errors.ts';

/** Milliseconds that each kind of call may take (agent reference 5). */
export const DEADLINES_MS = {
  inspect: 10_000,
  list: 15_000,
  /** The engine walks all that a container has written. */
  size: 120_000,
  network: 20_000,
  create: 30_000,
  /** The engine fills new volumes with what the image has at their path. */
  createWithVolumes: 300_000,
  volume: 20_000,
  /** Deletes all files in it. */
  removeVolume: 300_000,
  start: 60_000,
  /** Added to the grace that the container is given. */
  stop: 10_000,
  import: 60_000,
  /** Until the last byte of what a container holds was read. */
  copyOut: 600_000,
  /** The engine asks a registry meanwhile. */
  registry: 60_000,
  /** Deletes the files of all layers. */
  removeImage: 300_000,
} as const;

export type EngineCall = ReturnType<typeof createEngineCall>;

/** The engine may stop answering at any point, so the deadline ends the wait even if the client does not. */
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
    throw new EngineError('unavailable', 'an answer of unknown form', { cause: parsed.error });
  };
}

/** Settles as `work` does, or rejects with the signal's reason if that comes first. */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

/** `value` when `work` fails with one of `kinds`: for "missing is success". */
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

/** What narrows a list to objects that carry all of `labels`. */
export function labelFilter(labels: Record<string, string>): { label: string[] } {
  return { label: Object.entries(labels).map(([name, value]) => `${name}=${value}`) };
}
