/** Host ports for tests: a row of neighbours that nothing listens on, apart for each test process. */
import { systemRandom } from '#shared/runtime/random.ts';
import { probePort } from '../../agent/leases/port.service.ts';

const LOWEST = 21_000;
/** Below the ports that the kernel hands to outgoing connections. */
const HIGHEST = 32_000;
const MAX_TRIES = 100;

/** `count` free ports in a row, found at random so that tests that run side by side do not meet. */
export async function freePorts(count: number): Promise<{ first: number; last: number }> {
  for (let attempt = 0; attempt < MAX_TRIES; attempt += 1) {
    const first = LOWEST + systemRandom.int(HIGHEST - LOWEST - count);
    const row = Array.from({ length: count }, (_, index) => first + index);
    const free = await Promise.all(row.map(probePort));
    if (free.every(Boolean)) return { first, last: first + count - 1 };
  }
  throw new Error(`no ${count} free ports in a row`);
}
