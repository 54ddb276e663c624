/** Wire schemas of auto top-ups. */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { MICRO_USD_PER_USD } from '#shared/api/money.ts';
import type { FieldNames } from '../../platform/edge/field-names.ts';
import { CREATED_AT, UPDATED_AT } from '../../platform/openapi/field-texts.ts';
import { NaiveTime, optional, Usd, usdAmount } from '../../platform/wire.ts';
import { AUTO_TOP_UP_STATUSES } from './top-up.state.ts';

const MAX_USD = 1_000_000;
const CENTS = 100;

export const AutoTopUp = z
  .object(
    described(
      {
        id: z.uuid(),
        user_id: z.uuid(),
        enabled: z.boolean(),
        threshold_usd: Usd,
        amount_usd: Usd,
        monthly_limit_usd: Usd.nullable(),
        payment_method_id: z.string().nullable(),
        status: z.enum(AUTO_TOP_UP_STATUSES),
        month_charged_usd: Usd,
        last_attempt_at: NaiveTime.nullable(),
        last_error: z.string().nullable(),
        created_at: NaiveTime,
        updated_at: NaiveTime,
      },
      {
        id: 'Id of the stored settings.',
        user_id: 'Id of the account.',
        enabled: 'True if the balance is topped up automatically.',
        threshold_usd: 'Balance in USD below which a charge is made.',
        amount_usd: 'USD of one charge.',
        monthly_limit_usd:
          'Limit in USD for all charges of a calendar month (UTC); null for the default, which is 1000 or the amount of one charge, whichever is more.',
        payment_method_id: 'Id of the payment method at the payment processor; null for none.',
        status:
          'State of the auto top-up: no charge in progress, charge in progress, last charge failed, or suspended after a dispute.',
        month_charged_usd:
          'USD charged in this calendar month (UTC), including charges in progress.',
        last_attempt_at: 'Time of the last charge (UTC); null if there was no charge.',
        last_error: 'Reason why the last charge failed; null if it did not fail.',
        created_at: CREATED_AT,
        updated_at: UPDATED_AT,
      },
    ),
  )
  .meta({ id: 'AutoTopUp' });
export type AutoTopUp = z.output<typeof AutoTopUp>;

/** Payment processors charge whole cents. */
const Amount = usdAmount({ min: 5, max: 10_000 }).refine(
  (usd) => Math.round(usd * MICRO_USD_PER_USD) % (MICRO_USD_PER_USD / CENTS) === 0,
  'Whole cents',
);
const PaymentMethodId = z.string().regex(/^[\w-]{1,255}$/, 'Not a payment method');

/**
 * Changes of an auto top-up. The first update needs `enabled`, `threshold_usd` and `amount_usd`. In later updates,
 * absent fields are unchanged.
 */
export const AutoTopUpUpdateDto = z
  .object(
    described(
      {
        enabled: optional(z.boolean()),
        threshold_usd: optional(usdAmount({ min: 1, max: MAX_USD })),
        amount_usd: optional(Amount),
        monthly_limit_usd: usdAmount({ min: 5, max: MAX_USD }).nullish(),
        payment_method_id: PaymentMethodId.nullish(),
      },
      {
        enabled:
          'True tops the balance up automatically. Required in the first update; true needs a payment method.',
        threshold_usd:
          'Balance in USD below which a charge is made, at least 1. Required in the first update.',
        amount_usd: 'USD of one charge, 5 to 10000 in whole cents. Required in the first update.',
        monthly_limit_usd:
          'Limit in USD for all charges of a calendar month (UTC); null for the default, which is 1000 or the amount of one charge, whichever is more.',
        payment_method_id: 'Id of the payment method at the payment processor; null removes it.',
      },
    ),
  )
  .meta({
    id: 'AutoTopUpUpdateDto',
    example: { enabled: false, threshold_usd: 10, amount_usd: 50, monthly_limit_usd: 500 },
  });
export type AutoTopUpUpdateDto = z.output<typeof AutoTopUpUpdateDto>;

export const AUTO_TOP_UP_FIELD_NAMES: FieldNames = {
  synonyms: {
    active: 'enabled',
    threshold: 'threshold_usd',
    amount: 'amount_usd',
    monthly_limit: 'monthly_limit_usd',
    payment_method: 'payment_method_id',
  },
  echoed: Object.keys(AutoTopUp.shape),
};
