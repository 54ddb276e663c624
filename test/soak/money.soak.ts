/** Ten thousand random events, and a month of rentals in a small market: every micro-dollar is accounted for. */
import { systemClock } from '#shared/runtime/clock.ts';
import { openCentralDatabase } from '../../validator/central/platform/database/database.ts';
import { createSeededRandom } from '../fakes/seeded-random.ts';
import { finding, type Row } from '../measure/row.ts';
import { createMoneyWorld, type MoneyScene } from './money-world.ts';

const SEEDS = 10;
const EVENTS_A_SEED = 1_000;
const MONTH_DAYS = 30;
/** Length of a step: shorter than the time without contact after which the use of a node is not charged. */
const STEP_MS = 50_000;
const STEPS_A_DAY = 86_400_000 / STEP_MS;
/** Rentals per day, as many as removals, so that about half of the GPUs are rented. */
const RENTALS_A_DAY = 130;
/** Average number of steps between two metering ticks. */
const STEPS_A_TICK = 10;
/** Least number of pods that must have ended in the month. */
const LEAST_ENDED = 3_000;
/** Credit that lasts for the month; accounts of the random events may run out of money. */
const MONTH_CREDIT_UUSD = 1_000_000_000_000;
/** Time after the month within which its last day's earnings are paid out. */
const AFTER_MS = 3 * 86_400_000;
/** Payouts at the end; the processor pays only a minority of them at once. */
const LAST_PAYOUTS = 50;
const EVENTS_SCENE: MoneyScene = { renters: 5, nodes: 4, gpus: 2 };
const MONTH_SCENE: MoneyScene = { renters: 5, nodes: 4, gpus: 6 };

type Options = { seed: number; print(line: string): void };

/** Rejects with the name of the violated invariant. */
export async function moneyMatters(options: Options): Promise<Row[]> {
  const rows: Row[] = [];
  for (const part of [events, month]) {
    const sinceMs = systemClock.monotonicMs();
    rows.push(...(await part(options)));
    const tookS = (systemClock.monotonicMs() - sinceMs) / 1_000;
    options.print(`money: ${part.name} took ${tookS.toFixed(0)} s`);
  }
  return rows;
}

async function events({ seed, print }: Options): Promise<Row[]> {
  let done = 0;
  let rented = 0;
  for (let offset = 0; offset < SEEDS; offset += 1) {
    const db = await openCentralDatabase(':memory:');
    const world = await createMoneyWorld(createSeededRandom(seed + offset), EVENTS_SCENE, { db });
    for (let step = 0; step < EVENTS_A_SEED; step += 1) {
      await world.step();
      await world.check();
      done += 1;
    }
    await world.settle();
    await world.check();
    rented += world.rented();
    await world.close();
    print(`money: seed ${seed + offset}, ${done} events, ${rented} pods`);
  }
  const name = `random events that affect money, ${rented} pods`;
  return [finding(name, done, 'events', 'every invariant after each', true)];
}

/** Pods start and end every few minutes; the meter ticks at random, and earnings are paid out once a day. */
async function month({ seed, print }: Options): Promise<Row[]> {
  const random = createSeededRandom(seed);
  const db = await openCentralDatabase(':memory:');
  const credit = { signupCreditUusd: MONTH_CREDIT_UUSD };
  const world = await createMoneyWorld(random, MONTH_SCENE, { db, ...credit });
  for (let step = 1; step <= MONTH_DAYS * STEPS_A_DAY; step += 1) {
    const rents = random.int(STEPS_A_DAY) < RENTALS_A_DAY;
    const removes = random.int(STEPS_A_DAY) < RENTALS_A_DAY;
    if (rents) await world.rent();
    if (removes) await world.remove();
    await (rents || removes ? world.later(STEP_MS) : world.quiet(STEP_MS));
    if (random.int(STEPS_A_TICK) === 0) await world.meter();
    if (step % STEPS_A_DAY === 0) {
      await world.payOut();
      await world.check();
      print(`money: day ${step / STEPS_A_DAY}, ${world.rented()} pods`);
    }
  }
  await world.clear();
  await world.later(AFTER_MS);
  for (let round = 0; round < LAST_PAYOUTS; round += 1) {
    await world.payOut();
    await world.later(3_600_000);
  }
  await world.check();
  const { ended, owedUusd } = await world.progress();
  await world.close();
  if (owedUusd !== 0)
    throw new Error(`${owedUusd} uUSD were not paid out to providers after the month`);
  const name = `${MONTH_DAYS} days, ${ended} pods ended, everything paid out: debits equal credits and fees`;
  const bar = `to the micro-dollar, ${LEAST_ENDED} pods or more`;
  return [finding(name, ended, 'pods', bar, ended >= LEAST_ENDED)];
}
