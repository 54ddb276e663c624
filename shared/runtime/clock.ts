/** Time as a port. The only file that reads the system clock, starts timers or uses `Date`. */

export type Clock = {
  /** Wall clock, milliseconds since the Unix epoch. May jump; use it for dates only. */
  now(): number;
  /** Monotonic milliseconds from an arbitrary origin. Use it for durations and backoff. */
  monotonicMs(): number;
  /** Resolves after `ms`, or rejects with the signal's reason as soon as it aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** A signal that aborts with a `TimeoutError` after `ms`, or earlier together with `parent`. */
  deadline(ms: number, parent?: AbortSignal): AbortSignal;
};

const DAY_MS = 86_400_000;
/** How long work in a row keeps everything else waiting. */
const BREATH_MS = 20;

/**
 * For loops over many things that never wait for the world, as a SQLite database answers at once: each call gives
 * all other work of the process a turn once 20 ms have passed since the last.
 */
export function createBreath(clock: Pick<Clock, 'monotonicMs'>): () => Promise<void> {
  let sinceMs = clock.monotonicMs();
  return async () => {
    if (clock.monotonicMs() - sinceMs < BREATH_MS) return;
    await new Promise((resolve) => setImmediate(resolve));
    sinceMs = clock.monotonicMs();
  };
}

/** setTimeout overflows to 1 ms above this; longer sleeps are split. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The real clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  async sleep(ms, signal) {
    for (let left = ms; left > 0; left -= LONGEST_TIMER_MS) {
      await sleepOnce(Math.min(left, LONGEST_TIMER_MS), signal);
    }
    signal?.throwIfAborted();
  },
  deadline(ms, parent) {
    const timeout = AbortSignal.timeout(ms);
    return parent === undefined ? timeout : AbortSignal.any([timeout, parent]);
  },
};

/** Time zero, for libraries that take only a Date and output that must not depend on the time. */
export const EPOCH: Date = new Date(0);

/** `2026-11-20T23:50:00.123456`: the wire's outgoing time form, naive UTC, microseconds (contract 2). */
export function naiveUtc(epochMs: number): string {
  return `${new Date(epochMs).toISOString().slice(0, -1)}000`;
}

/** The first instant of the calendar month, UTC. */
export function startOfMonth(epochMs: number): number {
  const date = new Date(epochMs);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
}

/** The first instant of the day, UTC. */
export function startOfDay(epochMs: number): number {
  return Math.floor(epochMs / DAY_MS) * DAY_MS;
}

/** Milliseconds since the epoch of an ISO 8601 time; one without an offset counts as UTC. Null if invalid. */
export function parseIsoTime(text: string): number | null {
  const match = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})?$/.exec(
    text,
  );
  if (match === null || !isDate(text.slice(0, DATE_CHARS))) return null;
  const epochMs = Date.parse(match[3] === undefined ? `${text}Z` : text);
  return Number.isNaN(epochMs) ? null : epochMs;
}

const DATE_CHARS = '2026-11-20'.length;
/** Every month has as many. */
const SHORTEST_MONTH_DAYS = 28;

/** Date.parse takes the 31st of November for the 1st of December. */
function isDate(date: string): boolean {
  if (Number(date.slice(-2)) <= SHORTEST_MONTH_DAYS) return true;
  const epochMs = Date.parse(date);
  return !Number.isNaN(epochMs) && new Date(epochMs).toISOString().startsWith(date);
}

/** Milliseconds since the epoch of an HTTP Date header (RFC 9110 5.6.7, the form in use). Null if invalid. */
export function parseHttpDate(text: string): number | null {
  if (!/^\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text)) return null;
  const epochMs = Date.parse(text);
  return Number.isNaN(epochMs) ? null : epochMs;
}

function sleepOnce(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

// MERGED shared/runtime/clock.ts: Waiting no longer than so long, for work that cannot be told to stop.
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
