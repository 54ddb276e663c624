/** Wire schemas of renters' statements and providers' billing. */
import { z } from 'zod';
import { NaiveTime, queryNumber, Uuid } from '../../platform/wire.ts';

export const StatementParams = z.object({ id: Uuid });

export const PodStatement = z
  .object({
    pod_id: z.uuid(),
    /** Paid so far, minus refunds. */
    total: z.number(),
    refunded: z.number(),
    billed_seconds: z.int(),
    currency: z.literal('USD'),
    /** Oldest first. A refund is a line with state `refund` and a negative amount. */
    lines: z.array(
      z.object({
        from: NaiveTime,
        to: NaiveTime.nullable(),
        state: z.string(),
        cause: z.string(),
        gpu_count: z.int(),
        price_per_gpu: z.number(),
        amount: z.number(),
      }),
    ),
  })
  .meta({ id: 'PodStatement' });
export type PodStatement = z.output<typeof PodStatement>;

export const BillingParams = z.object({ hotkey: z.string().min(1).max(64) });
export const BillingQuery = z.object({
  scope: z.enum(['own', 'all']).optional(),
  page: queryNumber(z.int().min(1).max(1_000_000).default(1)),
  limit: queryNumber(z.int().min(1).max(100).default(20)),
});
export type BillingQuery = z.output<typeof BillingQuery>;

/** One pod on one day (UTC). */
export const BillingRow = z
  .object({
    id: z.string(),
    executor_id: z.uuid(),
    pod_id: z.uuid(),
    gpu_type: z.string(),
    gpu_count: z.int(),
    period_start: NaiveTime,
    period_end: NaiveTime,
    seconds: z.int(),
    gross_usd: z.number(),
    fee_usd: z.number(),
    net_usd: z.number(),
    status: z.enum(['pending', 'paid', 'reversed']),
  })
  .meta({ id: 'BillingRow' });
export type BillingRow = z.output<typeof BillingRow>;
