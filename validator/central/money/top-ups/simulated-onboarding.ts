/**
 * Onboarding of the simulated payment processor: opening the page of a payout account completes it. The id in the URL
 * is the credential.
 */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Database } from '../../platform/database/tables.ts';
import type { Onboarding } from '../../platform/ports.ts';

const PATH = '/payments/simulated-onboarding';

export function createSimulatedOnboarding({
  db,
  random,
}: {
  db: Database;
  random: Random;
}): Onboarding {
  return {
    async begin({ payoutAccountId, origin }) {
      const id = payoutAccountId ?? `acct_simulated_${random.uuid()}`;
      await db
        .insertInto('simulated_onboardings')
        .values({ payout_account_id: id, completed_at: null })
        .onConflict((conflict) => conflict.column('payout_account_id').doNothing())
        .execute();
      return { payoutAccountId: id, url: `${origin}${PATH}/${id}` };
    },

    async isComplete(payoutAccountId) {
      const row = await db
        .selectFrom('simulated_onboardings')
        .select('completed_at')
        .where('payout_account_id', '=', payoutAccountId)
        .executeTakeFirst();
      return (row?.completed_at ?? null) !== null;
    },
  };
}

const Completed = z.object({ success: z.literal(true), message: z.string() });

/** Registers the page at the origin. */
export function registerSimulatedOnboarding(
  origin: HttpServer,
  deps: {
    db: Database;
    clock: Clock;
    completeOnboarding(payoutAccountId: string): Promise<boolean>;
  },
): void {
  origin.get(
    `${PATH}/:id`,
    {
      config: { auth: 'none' },
      schema: {
        params: z.object({ id: z.string().max(100) }),
        response: { 200: Completed },
      },
    },
    async ({ params: { id } }) => {
      const done = await deps.db
        .updateTable('simulated_onboardings')
        .set({ completed_at: deps.clock.now() })
        .where('payout_account_id', '=', id)
        .executeTakeFirst();
      if (done.numUpdatedRows === 0n) {
        throw new ApiError('not_found', 'There is no onboarding with this id');
      }
      await deps.completeOnboarding(id);
      return { success: true as const, message: 'The simulated onboarding is complete' };
    },
  );
}
