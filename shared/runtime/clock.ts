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
/** Longest uninterrupted run between two yields. */
const YIELD_EVERY_MS = 20;

/**
 * Returns `yieldToEventLoop` for long loops whose awaits resolve immediately, such as loops over SQLite rows. A call
 * yields to the event loop if at least 20 ms have passed since the last yield; otherwise it returns at once.
 */
export function createEventLoopYield(clock: Pick<Clock, 'monotonicMs'>): () => Promise<void> {
  let sinceMs = clock.monotonicMs();
  return async () => {
    if (clock.monotonicMs() - sinceMs < YIELD_EVERY_MS) return;
    await new Promise((resolve) => setImmediate(resolve));
    sinceMs = clock.monotonicMs();
  };
}

/** Longest delay of setTimeout, which treats a longer one as 1 ms; longer sleeps are split. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

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

/** Time zero, for APIs that require a Date and for output that must not depend on the time. */
export const EPOCH: Date = new Date(0);

/** Formats a time as the wire sends it: UTC without an offset, six decimals (`2026-11-20T23:50:00.123456`). */
export function naiveUtc(epochMs: number): string {
  return `${new Date(epochMs).toISOString().slice(0, -1)}000`;
}

/** Formats a time for the name of a file: UTC, `20261120T235000Z`. */
export function fileTime(epochMs: number): string {
  return `${naiveUtc(epochMs).replaceAll(/[-:]/g, '').slice(0, 'YYYYMMDDThhmmss'.length)}Z`;
}

/** Returns the start of the UTC month, milliseconds since the epoch. */
export function startOfMonth(epochMs: number): number {
  const date = new Date(epochMs);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
}

/** Returns the start of the UTC day, milliseconds since the epoch. */
export function startOfDay(epochMs: number): number {
  return Math.floor(epochMs / DAY_MS) * DAY_MS;
}

/** Parses an ISO 8601 time into milliseconds since the epoch. A time without an offset is UTC. Null if invalid. */
export function parseIsoTime(text: string): number | null {
  const match = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})?$/.exec(
    text,
  );
  if (match === null || !isDate(text.slice(0, DATE_CHARS))) return null;
  const epochMs = Date.parse(match[3] === undefined ? `${text}Z` : text);
  return Number.isNaN(epochMs) ? null : epochMs;
}

const DATE_CHARS = '2026-11-20'.length;
/** Days up to this one exist in every month. */
const SHORTEST_MONTH_DAYS = 28;

/** Returns false for days that do not exist: Date.parse reads November 31 as December 1. */
function isDate(date: string): boolean {
  if (Number(date.slice(-2)) <= SHORTEST_MONTH_DAYS) return true;
  const epochMs = Date.parse(date);
  return !Number.isNaN(epochMs) && new Date(epochMs).toISOString().startsWith(date);
}

/** Parses an HTTP Date header (RFC 9110 5.6.7, IMF-fixdate) into milliseconds since the epoch. Null if invalid. */
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

/** Thrown by `withDeadline`. The work may still be running. */
export class DeadlineError extends Error {
  override name = 'DeadlineError';
}

const TIMEOUT_NAMES = ['DeadlineError', 'TimeoutError'];
const TIMEOUT_CODES = ['ETIMEDOUT', 'UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT'];
const MAX_CAUSES = 5;

/** Returns true if the error or one of its causes is an expired deadline, of this process or of a connection. */
export function isTimeout(error: unknown): boolean {
  let at = error;
  for (let depth = 0; depth < MAX_CAUSES && at instanceof Error; depth += 1) {
    if (TIMEOUT_NAMES.includes(at.name)) return true;
    if ('code' in at && TIMEOUT_CODES.includes(String(at.code))) return true;
    at = at.cause;
  }
  return false;
}

/**
 * Resolves or rejects as `work` does, or rejects with DeadlineError after `ms`. Late outcomes are dropped, including
 * rejections. For work that accepts an AbortSignal, pass it `clock.deadline` instead: that also ends the work.
 */
export async function withDeadline<T>(clock: Clock, ms: number, work: Promise<T>): Promise<T> {
  const done = new AbortController();
  const late = clock.sleep(ms, done.signal).then(() => {
    throw new DeadlineError(`no answer within ${ms} ms`);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    // The promise that lost the race may still reject, which must not be an unhandled rejection.
    late.catch(() => undefined);
    work.catch(() => undefined);
    done.abort();
  }
}
