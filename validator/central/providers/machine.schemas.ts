/** Requests and responses of the routes that need no credential: machines, reward estimates, shared configuration. */
import { z } from 'zod';
import { MAX_PORTAL_LIMIT, PageQuery } from '../platform/portal-answer.ts';
import { queryNumber, Usd } from '../platform/wire.ts';
import { GpuType } from './provider.schemas.ts';

const MAX_GPUS = 64;

/** Page of the machine catalogue; the whole catalogue by default. */
export const MachinePageQuery = PageQuery.extend({
  limit: queryNumber(z.int().min(1).max(MAX_PORTAL_LIMIT).default(MAX_PORTAL_LIMIT)),
});

export const MachineQuery = z.object({
  gpu_type: GpuType,
  gpu_count: queryNumber(z.int().min(1).max(MAX_GPUS)),
  /** USD per GPU and hour. Default: the reference price. */
  gpu_price: queryNumber(z.number().min(0)).optional(),
});
export type MachineQuery = z.output<typeof MachineQuery>;

const Share = z.number().min(0).max(1);

export const RewardEstimate = z
  .object({
    /** Share of the subnet's total weight, at the expected utilization. */
    rewards_on_subnet: Share,
    rewards_while_rented: Share,
    rewards_while_idle: Share,
    /** Reasons why the node would earn no rewards. */
    reward_obstacles: z.array(z.string()),
    /** Income while all GPUs are rented, before the fee. */
    rental_income_per_hour: Usd,
    platform_fee_per_hour: Usd,
    /** Fraction of such GPUs that is rented now. */
    expected_utilization: Share,
    gpu_type: z.string(),
    gpu_count: z.int(),
    gpu_price: Usd,
  })
  .meta({ id: 'RewardEstimate' });
export type RewardEstimate = z.output<typeof RewardEstimate>;

export const SharedConfig = z
  .object({
    machine_prices: z.record(z.string(), z.number()),
    machine_min_price_rate: z.number(),
    machine_max_price_rate: z.number(),
    platform_fee_rate: z.number(),
  })
  .meta({ id: 'SharedConfig' });
