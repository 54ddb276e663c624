/**
 * A payout processor that moves no money, for a marketplace on one host. The network of a payout determines its result.
 * Payouts are stored in the database and survive a restart.
 */
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Database, Db, SimulatedPayout } from '../../platform/database/tables.ts';
import type { PayoutAnswer, PayoutProcessor } from '../../platform/ports.ts';

/** Networks and what happens to their payouts. All others, and a provider's hotkey, are paid at once. */
export const SIMULATED_NETWORKS = {
  sim_declined: 'is declined',
  sim_late: 'is paid a minute later',
  sim_late_declined: 'is declined a minute later',
  sim_lost: 'is paid, and its first answer is lost',
} as const;

const LATE_MS = 60_000;
const DECLINED = 'the simulated recipient takes no payouts';

export type SimulatedPayoutsDeps = { db: Database; clock: Clock; random: Random };

export function createSimulatedPayouts({
  db,
  clock,
  random,
}: SimulatedPayoutsDeps): PayoutProcessor {
  function answerOf({ behaviour, external_id: externalId, ...row }: SimulatedPayout): PayoutAnswer {
    const isLate = behaviour.startsWith('sim_late') && clock.now() - row.created_at < LATE_MS;
    if (isLate) return { state: 'pending', externalId };
    if (behaviour === 'sim_lost' && row.asked === 1) {
      throw new ApiError('upstream_unavailable', 'The simulated answer was lost');
    }
    if (behaviour.endsWith('declined')) return { state: 'declined', externalId, reason: DECLINED };
    return { state: 'paid', externalId };
  }

  return {
    name: 'simulated',

    async send({ key, amountUusd, network }) {
      const row = await insertOrFindPayout(db, {
        payout_key: key,
        external_id: `simulated_${random.uuid()}`,
        asked: 0,
        behaviour: network ?? 'sim_ok',
        amount_uusd: amountUusd,
        created_at: clock.now(),
      });
      return answerOf(row);
    },
  };
}

/** Inserts a payout unless its key exists, and counts the request. Returns the stored payout. */
async function insertOrFindPayout(db: Db, row: SimulatedPayout): Promise<SimulatedPayout> {
  await db
    .insertInto('simulated_payouts')
    .values(row)
    .onConflict((conflict) => conflict.column('payout_key').doNothing())
    .execute();
  return db
    .updateTable('simulated_payouts')
    .set((eb) => ({ asked: eb('asked', '+', 1) }))
    .where('payout_key', '=', row.payout_key)
    .returningAll()
    .executeTakeFirstOrThrow();
}
