/**
 * A run of random operations and faults: invariants are checked after each operation, and the pods must settle at
 * intervals.
 */
import { systemClock } from '#shared/runtime/clock.ts';
import { createSeededRandom } from '../fakes/seeded-random.ts';
import { assertAlways, assertEnds, assertSettles, plantForeign } from './random-invariants.ts';
import { actAtRandom } from './random-operations.ts';
import { createWorld } from './random-world.ts';

/** Operations between two waits for everything to settle. */
const SETTLE_EVERY = 20;
const LONGEST_PAUSE_MS = 200;
/** Number of operations that the error of a failed run lists. */
const TRAIL = 25;

/**
 * Runs while `goOn` returns true. Resolves with the count of each operation; rejects with the seed and the last
 * operations.
 */
export async function runAtRandom(
  seed: number,
  goOn: (done: number) => boolean,
): Promise<Record<string, number>> {
  const random = createSeededRandom(seed);
  const world = await createWorld(random);
  const trail: string[] = [];
  try {
    const foreign = await plantForeign(world);
    while (goOn(trail.length)) {
      trail.push(await actAtRandom(world));
      if (random.int(2) === 0) await systemClock.sleep(random.int(LONGEST_PAUSE_MS));
      await assertAlways(world, foreign);
      if (trail.length % SETTLE_EVERY === 0) await assertSettles(world);
    }
    await assertSettles(world);
    await assertEnds(world);
    await assertAlways(world, foreign);
  } catch (cause) {
    const last = trail.slice(-TRAIL).join(', ');
    throw new Error(`seed ${seed}, after ${trail.length} operations (${last})`, { cause });
  } finally {
    await world.close();
  }
  return Object.fromEntries(
    Object.entries(Object.groupBy(trail, (name) => name)).map(([name, all]) => [
      name,
      all?.length ?? 0,
    ]),
  );
}
