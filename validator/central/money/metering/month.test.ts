/**
 * A month of pods with payouts: all money is accounted for, and a replay of the journal results in the same balances.
 */
import { expect, it } from 'vitest';
import { createTestDatabase } from '../../../../test/fakes/scenes/central-database.ts';
import { replayJournal } from '../../../../test/fakes/scenes/journal-replay.ts';
import { createSeededRandom } from '../../../../test/fakes/seeded-random.ts';
import { createMoneyWorld } from '../../../../test/soak/money-world.ts';
import { auditLedger } from '../ledger/audit.service.ts';

const DAYS = 30;
const HOUR_MS = 3_600_000;
/** Earnings of a day are paid out after the next day. */
const AFTER_MS = 3 * 24 * HOUR_MS;
/** Enough credit for all pods of the month. */
const CREDIT_UUSD = 100_000_000_000;
/** Maximum number of payout rounds at the end: the processor declines some payouts at random. */
const LAST_PAYOUTS = 30;

it('pays out the renters’ payments minus fees, and replays to the same balances', async () => {
  const db = await createTestDatabase();
  const scene = { renters: 2, nodes: 2, gpus: 2 };
  const random = createSeededRandom(25);
  const world = await createMoneyWorld(random, scene, { db, signupCreditUusd: CREDIT_UUSD });
  try {
    for (let day = 0; day < DAYS; day += 1) {
      await world.rent();
      await world.later(10_000);
      await world.quiet(12 * HOUR_MS + random.int(HOUR_MS));
      await world.meter();
      if (random.int(2) === 0) await world.remove();
      await world.quiet(11 * HOUR_MS);
      await world.payOut();
    }
    await world.check();
    await world.clear();
    await world.later(AFTER_MS);
    for (let round = 0; round < LAST_PAYOUTS; round += 1) {
      await world.payOut();
      await world.later(HOUR_MS);
      if ((await world.progress()).owedUusd === 0) break;
    }
    await world.check();
    const { ended, owedUusd } = await world.progress();
    expect([ended > DAYS / 2, owedUusd]).toEqual([true, 0]);
    const again = await createTestDatabase();
    await replayJournal(db, again);
    const hashOf = async (of: typeof db) => (await of.transaction().execute(auditLedger)).hash;
    expect(await hashOf(again)).toBe(await hashOf(db));
    await again.destroy();
  } finally {
    await world.close();
  }
});
