/** Free host ports for tests: a contiguous range on which no program listens. */
import { systemRandom } from '#shared/runtime/random.ts';
import { probePort } from '../../agent/leases/port.service.ts';

const LOWEST = 21_000;
/** Highest port to choose: below the range from which the kernel assigns ports to outgoing connections. */
const HIGHEST = 32_000;
const MAX_TRIES = 100;

/** Returns `count` free contiguous ports, chosen at random so that parallel tests do not collide. */
export async function freePorts(count: number): Promise<{ first: number; last: number }> {
  for (let attempt = 0; attempt < MAX_TRIES; attempt += 1) {
    const first = LOWEST + systemRandom.int(HIGHEST - LOWEST - count);
    const row = Array.from({ length: count }, (_, index) => first + index);
    const free = await Promise.all(row.map(probePort));
    if (free.every(Boolean)) return { first, last: first + count - 1 };
  }
  throw new Error(`no ${count} free ports in a row`);
}
