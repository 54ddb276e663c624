/** Ten thousand random events, and a month of a small market's rentals: not a micro-dollar is lost. */
import { openCentralDatabase } from '../../validator/central/db/database.ts';
import { createTestMarket } from '../fakes/market-fixture.ts';
import { createSeededRandom } from '../fakes/seeded-random.ts';
import { checkMoney, createMoneyWorld } from './money-world.ts';
import type { SoakRow } from './row.ts';

const SEEDS = 10;
const EVENTS_A_SEED = 1_000;
const MONTH_DAYS = 30;
/** Less than the silence after which a node's time is not charged. */
const STEP_MS = 50_000;
const STEPS_A_DAY = 86_400_000 / STEP_MS;
const RENTALS_A_DAY = 100;
const CHECKED_EVERY_STEPS = STEPS_A_DAY;
/** Nobody of the month runs out of money, of the events everybody may. */
const MONTH_CREDIT_UUSD = 1_000_000_000_000;
const SCENE = { renters: 5, nodes: 4 };

type Options = { seed: number; print(line: string): void };

/** Rejects, naming the invariant, when the money does not add up. */
export async function moneyMatters(options: Options): Promise<SoakRow[]> {
  return [...(await events(options)), ...(await month(options))];
}

async function events({ seed, print }: Options): Promise<SoakRow[]> {
  let done = 0;
  let rented = 0;
  for (let offset = 0; offset < SEEDS; offset += 1) {
    const db = await openCentralDatabase(':memory:');
    const market = await createTestMarket({ db });
    const world = await createMoneyWorld(market, createSeededRandom(seed + offset), SCENE);
    for (let step = 0; step < EVENTS_A_SEED; step += 1) {
      await world.step();
      await world.check();
      done += 1;
    }
    await world.settle();
    await world.check();
    rented += world.rented();
    await market.close();
    print(`money: seed ${seed + offset}, ${done} events, ${rented} pods`);
  }
  const name = `random events around the money, ${rented} pods`;
  return [{ name, value: done, unit: 'events', bar: 'every invariant after each', holds: true }];
}

/** Pods come and go every few minutes; the meter ticks when it likes. */
async function month({ seed, print }: Options): Promise<SoakRow[]> {
  const random = createSeededRandom(seed);
  const db = await openCentralDatabase(':memory:');
  const market = await createTestMarket({ db, signupCreditUusd: MONTH_CREDIT_UUSD });
  const world = await createMoneyWorld(market, random, SCENE);
  for (let step = 1; step <= MONTH_DAYS * STEPS_A_DAY; step += 1) {
    if (random.int(STEPS_A_DAY) < RENTALS_A_DAY) await world.rent();
    if (random.int(STEPS_A_DAY) < RENTALS_A_DAY) await world.remove();
    await world.later(STEP_MS);
    if (random.int(3) === 0) await world.meter();
    if (step % CHECKED_EVERY_STEPS === 0) {
      await world.check();
      print(`money: day ${step / STEPS_A_DAY}, ${world.rented()} pods`);
    }
  }
  await world.settle();
  await checkMoney(db);
  const rented = world.rented();
  await market.close();
  const name = `${MONTH_DAYS} days, ${rented} pods: debits are credits and fees`;
  return [{ name, value: rented, unit: 'pods', bar: 'to the micro-dollar', holds: true }];
}
