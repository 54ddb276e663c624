/**
 * A processor of payouts that moves no money, for a marketplace on one machine: what becomes of one follows from the
 * network that it is sent by. It keeps its books in the database, so that a restart forgets nothing.
 */

import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Database, SimulatedPayout } from '../../platform/database/tables.ts';
import type { PayoutAnswer, PayoutProcessor } from '../../platform/ports.ts';
import { askForPayout } from './simulated-payout.store.ts';

/** How each network behaves; every other one, and a provider's hotkey, is paid at once. */
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
      const row = await askForPayout(db, {
        ...{ payout_key: key, external_id: `simulated_${random.uuid()}`, asked: 0 },
        ...{ behaviour: network ?? 'sim_ok', amount_uusd: amountUusd, created_at: clock.now() },
      });
      return answerOf(row);
    },
  };
}
