/** Wire schemas of low-balance thresholds. */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { CREATED_AT, UPDATED_AT } from '../../platform/openapi/field-texts.ts';
import { NaiveTime, Usd, usdAmount } from '../../platform/wire.ts';

const MAX_THRESHOLD_USD = 1_000_000;
/** Limit of the runway: sixty days. */
const MAX_RUNWAY_MINUTES = 86_400;

const thresholds = described(
  { threshold_usd: Usd, runway_minutes: z.int() },
  {
    threshold_usd: 'Balance in USD below which a mail is sent.',
    runway_minutes:
      'A mail is sent when the balance lasts for less than this many minutes at the present cost.',
  },
);

export const EffectiveLowBalanceConfigDto = z
  .object({
    ...thresholds,
    ...described(
      {
        defaults: z.object(thresholds),
        overridden: z.array(z.enum(['threshold_usd', 'runway_minutes'])),
      },
      {
        defaults: 'Thresholds of accounts that have set no thresholds.',
        overridden: 'Names of the thresholds that the account has set.',
      },
    ),
  })
  .meta({ id: 'EffectiveLowBalanceConfigDto' });
export type EffectiveLowBalanceConfigDto = z.output<typeof EffectiveLowBalanceConfigDto>;

/** Changes of the thresholds. Null restores the default. Absent fields are unchanged. */
export const LowBalanceThresholdUpdateDto = z
  .object(
    described(
      {
        threshold_usd: usdAmount({ min: 0, max: MAX_THRESHOLD_USD }).nullish(),
        runway_minutes: z.int().min(0).max(MAX_RUNWAY_MINUTES).nullish(),
      },
      {
        threshold_usd:
          'Balance in USD; null restores the default; absent leaves the value unchanged.',
        runway_minutes:
          'Minutes, 0 to 86400; null restores the default; absent leaves the value unchanged.',
      },
    ),
  )
  .meta({
    id: 'LowBalanceThresholdUpdateDto',
    example: { threshold_usd: 20, runway_minutes: null },
  });
export type LowBalanceThresholdUpdateDto = z.output<typeof LowBalanceThresholdUpdateDto>;

export const LowBalanceThreshold = z
  .object(
    described(
      {
        id: z.uuid(),
        user_id: z.uuid(),
        threshold_usd: Usd.nullable(),
        runway_minutes: z.int().nullable(),
        created_at: NaiveTime,
        updated_at: NaiveTime,
      },
      {
        id: 'Id of the stored thresholds.',
        user_id: 'Id of the account.',
        threshold_usd: 'Balance in USD that the account has set; null for the default.',
        runway_minutes: 'Minutes that the account has set; null for the default.',
        created_at: CREATED_AT,
        updated_at: UPDATED_AT,
      },
    ),
  )
  .meta({ id: 'LowBalanceThreshold' });
export type LowBalanceThreshold = z.output<typeof LowBalanceThreshold>;
