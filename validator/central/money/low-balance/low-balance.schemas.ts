/** Wire schemas of low-balance thresholds. */
import { z } from 'zod';
import { NaiveTime, Usd, usdAmount } from '../../platform/wire.ts';

const MAX_THRESHOLD_USD = 1_000_000;
/** Sixty days. */
const MAX_RUNWAY_MINUTES = 86_400;

const thresholds = { threshold_usd: Usd, runway_minutes: z.int() };

export const EffectiveLowBalanceConfigDto = z
  .object({
    ...thresholds,
    defaults: z.object(thresholds),
    /** Thresholds that the account has set itself. */
    overridden: z.array(z.enum(['threshold_usd', 'runway_minutes'])),
  })
  .meta({ id: 'EffectiveLowBalanceConfigDto' });
export type EffectiveLowBalanceConfigDto = z.output<typeof EffectiveLowBalanceConfigDto>;

/** Null restores the default. Absent fields stay as they are. */
export const LowBalanceThresholdUpdateDto = z
  .object({
    threshold_usd: usdAmount({ min: 0, max: MAX_THRESHOLD_USD }).nullish(),
    runway_minutes: z.int().min(0).max(MAX_RUNWAY_MINUTES).nullish(),
  })
  .meta({ id: 'LowBalanceThresholdUpdateDto' });
export type LowBalanceThresholdUpdateDto = z.output<typeof LowBalanceThresholdUpdateDto>;

export const LowBalanceThreshold = z
  .object({
    id: z.uuid(),
    user_id: z.uuid(),
    threshold_usd: Usd.nullable(),
    runway_minutes: z.int().nullable(),
    created_at: NaiveTime,
    updated_at: NaiveTime,
  })
  .meta({ id: 'LowBalanceThreshold' });
export type LowBalanceThreshold = z.output<typeof LowBalanceThreshold>;
