/**
 * Requests and responses of the routes that require no credential: machines, reward estimates, shared configuration.
 */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { MAX_PORTAL_LIMIT, PageQuery } from '../platform/portal-answer.ts';
import { queryNumber, Usd } from '../platform/wire.ts';
import { GpuType } from './provider.schemas.ts';

const MAX_GPUS = 64;

/** Page of the machine catalogue. Without parameters, the page contains the whole catalogue. */
export const MachinePageQuery = PageQuery.extend(
  described(
    { limit: queryNumber(z.int().min(1).max(MAX_PORTAL_LIMIT).default(MAX_PORTAL_LIMIT)) },
    { limit: 'Maximum number of entries per page, 1 to 1000.' },
  ),
).meta({ example: { page: 1, limit: 100 } });

export const MachineQuery = z
  .object(
    described(
      {
        gpu_type: GpuType,
        gpu_count: queryNumber(z.int().min(1).max(MAX_GPUS)),
        gpu_price: queryNumber(z.number().min(0)).optional(),
      },
      {
        gpu_type: 'Short type or full name of the GPU.',
        gpu_count: 'Number of GPUs of the node, 1 to 64.',
        gpu_price: 'Price in USD per GPU and hour; absent for the reference price.',
      },
    ),
  )
  .meta({ example: { gpu_type: 'H100', gpu_count: 8 } });
export type MachineQuery = z.output<typeof MachineQuery>;

const Share = z.number().min(0).max(1);

export const RewardEstimate = z
  .object(
    described(
      {
        rewards_on_subnet: Share,
        rewards_while_rented: Share,
        rewards_while_idle: Share,
        reward_obstacles: z.array(z.string()),
        rental_income_per_hour: Usd,
        platform_fee_per_hour: Usd,
        expected_utilization: Share,
        gpu_type: z.string(),
        gpu_count: z.int(),
        gpu_price: Usd,
      },
      {
        rewards_on_subnet:
          "Share of the subnet's total weight at the expected utilization, 0 to 1.",
        rewards_while_rented:
          "Share of the subnet's total weight while the node is rented, 0 to 1.",
        rewards_while_idle: "Share of the subnet's total weight while the node is free, 0 to 1.",
        reward_obstacles:
          'Names of the weight rules that would prevent rewards for the node; empty if none would.',
        rental_income_per_hour:
          'Rental income in USD per hour while all GPUs are rented, before the fee.',
        platform_fee_per_hour: 'Fee of the marketplace in USD per hour.',
        expected_utilization: 'Fraction of such GPUs that is rented now, 0 to 1.',
        gpu_type: 'Full name of the GPU type.',
        gpu_count: 'Number of GPUs.',
        gpu_price: 'Price in USD per GPU and hour that the estimate assumes.',
      },
    ),
  )
  .meta({ id: 'RewardEstimate', description: 'Expected income of a node.' });
export type RewardEstimate = z.output<typeof RewardEstimate>;

export const SharedConfig = z
  .object(
    described(
      {
        machine_prices: z.record(z.string(), z.number()),
        machine_min_price_rate: z.number(),
        machine_max_price_rate: z.number(),
        platform_fee_rate: z.number(),
      },
      {
        machine_prices: 'Reference price in USD per GPU and hour, by full name of the GPU type.',
        machine_min_price_rate: 'Lowest allowed price as a multiple of the reference price.',
        machine_max_price_rate: 'Highest allowed price as a multiple of the reference price.',
        platform_fee_rate: 'Fee of the marketplace as a fraction of what renters pay.',
      },
    ),
  )
  .meta({ id: 'SharedConfig' });
