/** Wire schemas of auto top-ups. */
import { z } from 'zod';
import { MICRO_USD_PER_USD } from '#shared/api/money.ts';
import type { FieldNames } from '../../platform/edge/field-names.ts';
import { NaiveTime, optional, Usd, usdAmount } from '../../platform/wire.ts';
import { AUTO_TOP_UP_STATUSES } from './top-up.state.ts';

const MAX_USD = 1_000_000;
const CENTS = 100;

export const AutoTopUp = z
  .object({
    id: z.uuid(),
    user_id: z.uuid(),
    enabled: z.boolean(),
    threshold_usd: Usd,
    amount_usd: Usd,
    monthly_limit_usd: Usd.nullable(),
    payment_method_id: z.string().nullable(),
    status: z.enum(AUTO_TOP_UP_STATUSES),
    /** Charged in this calendar month (UTC), including charges in flight. */
    month_charged_usd: Usd,
    last_attempt_at: NaiveTime.nullable(),
    last_error: z.string().nullable(),
    created_at: NaiveTime,
    updated_at: NaiveTime,
  })
  .meta({ id: 'AutoTopUp' });
export type AutoTopUp = z.output<typeof AutoTopUp>;

/** Payment processors charge whole cents. */
const Amount = usdAmount({ min: 5, max: 10_000 }).refine(
  (usd) => Math.round(usd * MICRO_USD_PER_USD) % (MICRO_USD_PER_USD / CENTS) === 0,
  'Whole cents',
);
const PaymentMethodId = z.string().regex(/^[\w-]{1,255}$/, 'Not a payment method');

/** The first update needs `enabled`, `threshold_usd` and `amount_usd`. Afterwards absent fields stay as they are. */
export const AutoTopUpUpdateDto = z
  .object({
    enabled: optional(z.boolean()),
    threshold_usd: optional(usdAmount({ min: 1, max: MAX_USD })),
    amount_usd: optional(Amount),
    /** Null: $1,000, or the amount of one charge if that is more. */
    monthly_limit_usd: usdAmount({ min: 5, max: MAX_USD }).nullish(),
    /** Null removes the payment method. */
    payment_method_id: PaymentMethodId.nullish(),
  })
  .meta({ id: 'AutoTopUpUpdateDto' });
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
