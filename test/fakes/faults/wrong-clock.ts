/**
 * Preloaded into a process of the system under test (`node --import`). It shifts the process's wall clock and delays
 * its start, as the file in PODWRIGHT_TEST_FAULTS requires. Monotonic time, timers and other programs are not affected.
 */
import { readFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

/** Content of the file. An absent file means no fault. */
export type HostFaults = {
  /** Added to the wall clock. */
  clockOffsetMs: number;
  /** Time before the first line of the program runs. */
  startDelayMs: number;
};

export const NO_FAULTS: HostFaults = { clockOffsetMs: 0, startDelayMs: 0 };

const READ_EVERY_MS = 200;

await preload(process.env['PODWRIGHT_TEST_FAULTS'] ?? '');

async function preload(file: string): Promise<void> {
  if (file === '') return;
  shiftClock(file);
  const { startDelayMs } = faultsIn(file);
  if (isMainThread && startDelayMs > 0) {
    await new Promise((resolve) => setTimeout(resolve, startDelayMs));
  }
}

function shiftClock(file: string): void {
  const RealDate = globalThis.Date;
  const realNow = RealDate.now;
  let { clockOffsetMs: offsetMs } = faultsIn(file);
  const refresh = () => {
    offsetMs = faultsIn(file).clockOffsetMs;
  };
  setInterval(refresh, READ_EVERY_MS).unref();
  const now = () => realNow() + offsetMs;
  RealDate.now = now;
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, given, newTarget) =>
      Reflect.construct(target, given.length === 0 ? [now()] : given, newTarget),
  });
}

function faultsIn(file: string): HostFaults {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return NO_FAULTS;
  }
}
