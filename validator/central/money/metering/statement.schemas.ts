/** Wire schemas of renters' statements and providers' billing. */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { PAGE } from '../../platform/openapi/field-texts.ts';
import { NaiveTime, queryNumber, Uuid } from '../../platform/wire.ts';

export const StatementParams = z.object({ id: Uuid });

export const PodStatement = z
  .object(
    described(
      {
        pod_id: z.uuid(),
        total: z.number(),
        unposted: z.number(),
        refunded: z.number(),
        billed_seconds: z.int(),
        period_count: z.int(),
        currency: z.literal('USD'),
        lines: z.array(
          z.object(
            described(
              {
                from: NaiveTime,
                to: NaiveTime,
                state: z.string(),
                cause: z.string(),
                gpu_count: z.int(),
                price_per_gpu: z.number(),
                amount: z.number(),
              },
              {
                from: 'Start of the period (UTC).',
                to: 'End of the period (UTC); for the current period, the time up to which it is charged.',
                state:
                  'State of the pod in the period, `minimum_charge`, `further_periods` or `refund`.',
                cause: 'Reason for the start of the period, or for the refund.',
                gpu_count: 'Number of GPUs that were charged.',
                price_per_gpu: 'USD per GPU and hour.',
                amount: 'USD for the period.',
              },
            ),
          ),
        ),
      },
      {
        pod_id: 'Id of the pod.',
        total: 'USD charged for the pod so far, less refunds.',
        unposted: 'Part of `total` in USD that the journal does not have yet.',
        refunded: 'USD refunded.',
        billed_seconds: 'Seconds that were charged.',
        period_count: 'Number of periods of the pod.',
        currency: 'Always `USD`.',
        lines:
          'Periods with one price, oldest first; they sum to `total`. The 10,000 oldest periods have a line each; one line with the state `further_periods` sums all later ones. A pod that ran for less than a minute has a line with the state `minimum_charge` for the rest of the minute. A refund is a line with the state `refund` and a negative amount.',
      },
    ),
  )
  .meta({ id: 'PodStatement' });
export type PodStatement = z.output<typeof PodStatement>;

export const BillingParams = z.object({ hotkey: z.string().min(1).max(64) });
export const BillingQuery = z
  .object(
    described(
      {
        scope: z.enum(['own', 'all']).optional(),
        page: queryNumber(z.int().min(1).max(1_000_000).default(1)),
        limit: queryNumber(z.int().min(1).max(100).default(20)),
      },
      {
        scope: "`own` for the provider's own billing; `all` for the billing of all providers.",
        page: PAGE,
        limit: 'Maximum number of entries per page, 1 to 100.',
      },
    ),
  )
  .meta({ example: { scope: 'own', page: 1, limit: 20 } });
export type BillingQuery = z.output<typeof BillingQuery>;

const EARNED = described(
  { seconds: z.int(), gross_usd: z.number(), fee_usd: z.number(), net_usd: z.number() },
  {
    seconds: 'Seconds that were charged.',
    gross_usd: 'USD that renters paid, less refunds.',
    fee_usd: 'Fee of the marketplace in USD.',
    net_usd: 'USD for the provider: `gross_usd` less `fee_usd`.',
  },
);

/** Time and amounts of billing. */
export const EarningsSum = z.object(EARNED);
export type EarningsSum = z.output<typeof EarningsSum>;

/** One pod on one day (UTC). Rows of other providers have no pod and no amounts. */
export const BillingRow = z
  .object(
    described(
      {
        id: z.string(),
        executor_id: z.uuid(),
        executor_huid: z.string(),
        pod_id: z.uuid().nullable(),
        gpu_type: z.string(),
        gpu_count: z.int(),
        period_start: NaiveTime,
        period_end: NaiveTime,
        seconds: z.int(),
        gross_usd: z.number().nullable(),
        fee_usd: z.number().nullable(),
        net_usd: z.number().nullable(),
        unposted: EarningsSum.nullable(),
        status: z.enum(['pending', 'paid', 'reversed']),
      },
      {
        id: 'Id of the entry.',
        executor_id: 'Id of the node.',
        executor_huid: 'Readable name of the node.',
        pod_id: 'Id of the pod; null for a pod of another provider.',
        gpu_type: 'Full name of the GPU type.',
        gpu_count: 'Number of GPUs of the pod.',
        period_start: 'Start of the period (UTC). An entry covers one pod on one day (UTC).',
        period_end: 'End of the period (UTC).',
        seconds: 'Seconds that were charged.',
        gross_usd: 'USD that the renter paid; null for a pod of another provider.',
        fee_usd: 'Fee of the marketplace in USD; null for a pod of another provider.',
        net_usd:
          'USD for the provider: `gross_usd` less `fee_usd`; null for a pod of another provider.',
        unposted:
          'Part of this entry that is metered and not posted yet; null for a pod of another provider.',
        status: 'State of the amount: still to be paid out, paid out, or reversed.',
      },
    ),
  )
  .meta({ id: 'BillingRow' });
export type BillingRow = z.output<typeof BillingRow>;

/** All posted billing of the caller on one node. */
export const NodeEarnings = z
  .object({
    ...described(
      { executor_id: z.uuid(), executor_huid: z.string(), gpu_type: z.string() },
      {
        executor_id: 'Id of the node.',
        executor_huid: 'Readable name of the node.',
        gpu_type: 'Full name of the GPU type.',
      },
    ),
    ...EARNED,
  })
  .meta({ id: 'NodeEarnings' });
export type NodeEarnings = z.output<typeof NodeEarnings>;
