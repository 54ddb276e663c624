/** Wire schema of an account at the payment processor that receives payouts. */
import { z } from 'zod';
import { described } from '#shared/api/described.ts';

export const PayoutAccount = z
  .object(
    described(
      {
        stripe_connect_account_id: z.string().nullable(),
        stripe_onboarding_completed: z.boolean(),
        onboarding_url: z.string().nullable(),
      },
      {
        stripe_connect_account_id:
          'Id of the account at the payment processor; null before the onboarding began.',
        stripe_onboarding_completed:
          'True if the owner completed the onboarding, so that `stripe_connect` is a valid payout method.',
        onboarding_url:
          'Page on which the owner completes the onboarding; null if this request neither began nor continued the onboarding.',
      },
    ),
  )
  .meta({ id: 'PayoutAccount' });
export type PayoutAccount = z.output<typeof PayoutAccount>;
