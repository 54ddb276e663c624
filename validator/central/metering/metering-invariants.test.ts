/** After every step of random lives of pods the money adds up; `npm run soak -- --only money` takes more of them. */
import { expect, it } from 'vitest';
import { createTestMarket } from '../../../test/fakes/market-fixture.ts';
import { createSeededRandom } from '../../../test/fakes/seeded-random.ts';
import { createMoneyWorld } from '../../../test/soak/money-world.ts';

const STEPS = 75;

it.each([1, 2, 3, 4])('adds up whatever happens, seed %i', async (seed) => {
  const market = await createTestMarket();
  try {
    const scene = { renters: 2, nodes: 2 };
    const world = await createMoneyWorld(market, createSeededRandom(seed), scene);
    for (let step = 0; step < STEPS; step += 1) {
      await world.step();
      await world.check();
    }
    await world.settle();
    await world.check();
    expect(world.rented()).toBeGreaterThan(0);
  } finally {
    await market.close();
  }
});
