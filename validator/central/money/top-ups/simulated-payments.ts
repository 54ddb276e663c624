/**
 * A payment processor that moves no money, for a marketplace on one host. The payment method determines the result of a
 * charge, as the test cards of real processors do. Charges are stored in the database and survive a restart.
 */
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Database, Db, SimulatedCharge } from '../../platform/database/tables.ts';
import type { ChargeAnswer, Payments } from '../../platform/ports.ts';
import { createSimulatedOnboarding } from './simulated-onboarding.ts';

/** Payment methods and the result of their charges. */
export const SIMULATED_METHODS = {
  sim_ok: 'succeeds at once',
  sim_declined: 'is declined',
  sim_late: 'succeeds a minute later',
  sim_late_declined: 'is declined a minute later',
  sim_disputed: 'succeeds, and is disputed two minutes later',
} as const;

const LATE_MS = 60_000;
const DISPUTE_MS = 120_000;
const DECLINED = 'the simulated card was declined';

export type SimulatedPaymentsDeps = { db: Database; clock: Clock; random: Random };

export function createSimulatedPayments({ db, clock, random }: SimulatedPaymentsDeps): Payments {
  function answerOf(charge: SimulatedCharge): ChargeAnswer {
    const { external_id: externalId, payment_method_id: method } = charge;
    const isLate = method.startsWith('sim_late') && clock.now() - charge.created_at < LATE_MS;
    if (isLate) return { state: 'pending', externalId };
    if (method.endsWith('declined')) return { state: 'declined', externalId, reason: DECLINED };
    return { state: 'succeeded', externalId };
  }

  return {
    name: 'simulated',
    onboarding: createSimulatedOnboarding({ db, random }),

    async attach({ paymentMethodId, customerId }) {
      if (Object.hasOwn(SIMULATED_METHODS, paymentMethodId)) return { customerId };
      const methods = Object.entries(SIMULATED_METHODS).map(([id, result]) => `${id} ${result}`);
      throw new ApiError('bad_request', 'The simulated payment processor has no such method', {
        hint: `This marketplace simulates payments. Use one of these methods: ${methods.join(', ')}.`,
      });
    },

    async charge({ key, paymentMethodId, amountUusd }) {
      const charge = await insertCharge(db, {
        charge_key: key,
        external_id: `simulated_${random.uuid()}`,
        payment_method_id: paymentMethodId,
        amount_uusd: amountUusd,
        created_at: clock.now(),
        disputed_at: null,
      });
      return answerOf(charge);
    },

    async findCharge(externalId) {
      const charge = await findSimulatedCharge(db, externalId);
      if (charge !== undefined) return answerOf(charge);
      throw new ApiError('upstream_unavailable', 'The simulated charge does not exist');
    },

    async poll(apply) {
      const nowMs = clock.now();
      for (const charge of await listUndisputed(db, 'sim_disputed', nowMs - DISPUTE_MS)) {
        const { external_id: externalId, charge_key: key, amount_uusd: amountUusd } = charge;
        await apply({ externalId, key, change: { kind: 'disputed', amountUusd } });
        await markDisputed(db, externalId, nowMs);
      }
    },
  };
}

/** Inserts a charge unless its key exists. Returns the stored charge. */
async function insertCharge(db: Db, row: SimulatedCharge): Promise<SimulatedCharge> {
  await db
    .insertInto('simulated_charges')
    .values(row)
    .onConflict((conflict) => conflict.column('charge_key').doNothing())
    .execute();
  return db
    .selectFrom('simulated_charges')
    .selectAll()
    .where('charge_key', '=', row.charge_key)
    .executeTakeFirstOrThrow();
}

function findSimulatedCharge(db: Db, externalId: string): Promise<SimulatedCharge | undefined> {
  return db
    .selectFrom('simulated_charges')
    .selectAll()
    .where('external_id', '=', externalId)
    .executeTakeFirst();
}

/** Charges of a payment method up to `untilMs` for which no dispute was reported yet. */
function listUndisputed(
  db: Db,
  paymentMethodId: string,
  untilMs: number,
): Promise<SimulatedCharge[]> {
  return db
    .selectFrom('simulated_charges')
    .selectAll()
    .where('payment_method_id', '=', paymentMethodId)
    .where('created_at', '<=', untilMs)
    .where('disputed_at', 'is', null)
    .execute();
}

async function markDisputed(db: Db, externalId: string, nowMs: number): Promise<void> {
  await db
    .updateTable('simulated_charges')
    .set({ disputed_at: nowMs })
    .where('external_id', '=', externalId)
    .execute();
}
