/** Time of the browser. The only file of the console that reads the clock or sets timers. */

const SIMULATION_EVENT = 'podwright-simulation';

/**
 * Makes the console use the time of a simulated marketplace, in the form of the API, instead of the browser's. The page
 * stores it as an attribute.
 */
export function recordSimulatedTime(text: string): void {
  const epochMs = parseApiTime(text);
  if (epochMs === null) return;
  const isFirst = !isSimulated();
  document.documentElement.dataset['simulatedMs'] = String(epochMs);
  if (isFirst) window.dispatchEvent(new Event(SIMULATION_EVENT));
}

/** Returns true once the server has answered with a simulated time. */
export function isSimulated(): boolean {
  return simulatedMs() !== null;
}

/** Calls `notify` when the first simulated time arrives; returns the function that ends this. */
export function subscribeSimulation(notify: () => void): () => void {
  window.addEventListener(SIMULATION_EVENT, notify);
  return () => window.removeEventListener(SIMULATION_EVENT, notify);
}

/** Returns the time of a simulated marketplace as of its newest answer; null if the browser's time is right. */
function simulatedMs(): number | null {
  const text = document.documentElement.dataset['simulatedMs'];
  return text === undefined ? null : Number(text);
}

export function nowMs(): number {
  return simulatedMs() ?? Date.now();
}

/** Parses a time of the API, which is UTC without offset, to milliseconds since the epoch; null if it is not a time. */
export function parseApiTime(text: string): number | null {
  const hasOffset = /(?:z|[+-]\d\d:?\d\d)$/i.test(text);
  const epochMs = Date.parse(hasOffset ? text : `${text}Z`);
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
