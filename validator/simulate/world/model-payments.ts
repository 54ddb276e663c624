/** A payment processor in memory, which can be late, and which can report a charge twice. It charges every method. */
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { ChargeAnswer, Payments } from '../../central/platform/ports.ts';

export type ModelPayments = {
  port: Payments;
  /** True: charges that begin are pending until it is false again. */
  isLate: boolean;
  /** Number of times that the success of a charge is reported. */
  reports: number;
};

type Charge = { externalId: string; key: string; isPending: boolean; reportsLeft: number };

export function createModelPayments(random: Random): ModelPayments {
  /** Charges by their idempotency key, and by their id. */
  const charges = new Map<string, Charge>();
  const byId = new Map<string, Charge>();
  /** Charges of which a success is to be reported. */
  const unreported = new Set<Charge>();

  function answerOf(charge: Charge): ChargeAnswer {
    if (!model.isLate) charge.isPending = false;
    return { state: charge.isPending ? 'pending' : 'succeeded', externalId: charge.externalId };
  }

  const model: ModelPayments = {
    isLate: false,
    reports: 1,
    port: {
      name: 'model',
      attach: async ({ accountId }) => ({ customerId: `customer ${accountId}` }),
      async charge({ key }) {
        const known = charges.get(key);
        if (known !== undefined) return answerOf(known);
        const externalId = `charge_${random.uuid()}`;
        const charge = { externalId, key, isPending: true, reportsLeft: model.reports };
        charges.set(key, charge);
        byId.set(externalId, charge);
        unreported.add(charge);
        return answerOf(charge);
      },
      async findCharge(externalId) {
        const charge = byId.get(externalId);
        if (charge !== undefined) return answerOf(charge);
        throw new ApiError('upstream_unavailable', 'The modelled processor has no such charge');
      },
      async poll(apply) {
        for (const charge of unreported) {
          if (answerOf(charge).state === 'pending') continue;
          const { externalId, key } = charge;
          await apply({ externalId, key, change: { kind: 'succeeded' } });
          charge.reportsLeft -= 1;
          if (charge.reportsLeft <= 0) unreported.delete(charge);
        }
      },
    },
  };
  return model;
}
