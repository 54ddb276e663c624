/** The portal's catalogue of machines and what they bring in, on the wire (contract 10). */
import { z } from 'zod';
import { queryNumber, Usd } from '../platform/wire.ts';
import { GpuType } from './provider.schemas.ts';

const MAX_GPUS = 64;

export const MachineQuery = z.object({
  gpu_type: GpuType,
  gpu_count: queryNumber(z.int().min(1).max(MAX_GPUS)),
  /** USD per GPU and hour; the reference price when absent. */
  gpu_price: queryNumber(z.number().min(0)).optional(),
});
export type MachineQuery = z.output<typeof MachineQuery>;

const Share = z.number().min(0).max(1);

export const RewardEstimate = z
  .object({
    /** Part of all that the subnet's weights give away, at the expected utilization. */
    rewards_on_subnet: Share,
    rewards_while_rented: Share,
    rewards_while_idle: Share,
    /** Why it would earn nothing; empty when it would. */
    reward_obstacles: z.array(z.string()),
    /** While all of it is rented, before the fee. */
    rental_income_per_hour: Usd,
    platform_fee_per_hour: Usd,
    /** Part of the time that such GPUs are rented now. */
    expected_utilization: Share,
    gpu_type: z.string(),
    gpu_count: z.int(),
    gpu_price: Usd,
  })
  .meta({ id: 'RewardEstimate' });
export type RewardEstimate = z.output<typeof RewardEstimate>;
