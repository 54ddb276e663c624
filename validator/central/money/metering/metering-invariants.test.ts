/**
 * Checks the invariants after every step of random pod lives. `npm run soak -- --only money` runs more of these lives.
 */
import { expect, it } from 'vitest';
import { createTestDatabase } from '../../../../test/fakes/scenes/central-database.ts';
import { createSeededRandom } from '../../../../test/fakes/seeded-random.ts';
import { createMoneyWorld } from '../../../../test/soak/money-world.ts';

const STEPS = 75;

it.each([9, 13, 28, 44])('keeps every invariant over random pod lives, seed %i', async (seed) => {
  const scene = { renters: 2, nodes: 2, gpus: 2 };
  const db = await createTestDatabase();
  const world = await createMoneyWorld(createSeededRandom(seed), scene, { db });
  try {
    for (let step = 0; step < STEPS; step += 1) {
      await world.step();
      await world.check();
    }
    await world.settle();
    await world.check();
    expect(world.rented()).toBeGreaterThan(0);
  } finally {
    await world.close();
  }
});
