/** Time of the browser. The only file of the console that reads the clock or sets timers. */

/** Time of the browser; pages use `nowMs` of server-time.ts. */
export function browserMs(): number {
  return Date.now();
}

/** Parses a time of the API, which is UTC without offset, to milliseconds since the epoch; null if it is not a time. */
export function parseApiTime(text: string): number | null {
  const hasOffset = /(?:z|[+-]\d\d:?\d\d)$/i.test(text);
  const epochMs = Date.parse(hasOffset ? text : `${text}Z`);
  return Number.isNaN(epochMs) ? null : epochMs;
}

/** Parses the header `Date` of a response to milliseconds since the epoch; null if it is not a date. */
export function parseHttpDate(text: string | null): number | null {
  const epochMs = Date.parse(text ?? '');
  return Number.isNaN(epochMs) ? null : epochMs;
}

/** Parses the value of a field `datetime-local`, which is local time, to milliseconds since the epoch. */
export function parseLocalTime(text: string): number | null {
  const epochMs = new Date(text).getTime();
  return Number.isNaN(epochMs) ? null : epochMs;
}

/** Returns a Date for `Intl` formatters. */
export function dateOf(epochMs: number): Date {
  return new Date(epochMs);
}

/** Returns what local time is ahead of UTC at a time, in milliseconds. */
export function localOffsetMs(epochMs: number): number {
  return -new Date(epochMs).getTimezoneOffset() * 60_000;
}

/** Calls `run` after `ms`; returns the function that cancels it. */
export function after(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
}

/** Calls `run` every `ms`; returns the function that ends it. */
export function every(ms: number, run: () => void): () => void {
  const timer = setInterval(run, ms);
  return () => clearInterval(timer);
}

/** Resolves after `ms`, or at once when the signal aborts. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const cancel = after(ms, resolve);
    signal?.addEventListener('abort', () => {
      cancel();
      resolve();
    });
  });
}

/** Returns a time as the value of a field for local time. */
export function localFieldOf(epochMs: number): string {
  const offsetMs = new Date(epochMs).getTimezoneOffset() * 60_000;
  return new Date(epochMs - offsetMs).toISOString().slice(0, 16);
}
