/** What a deployment estimate asks and says (contract 3.2). */
import { z } from 'zod';
import { Uuid } from '../../platform/wire.ts';
import { ETA_BASES } from './launch-estimate.ts';

export const DeploymentEstimateQuery = z.object({ template_id: Uuid, executor_id: Uuid });
export type DeploymentEstimateQuery = z.output<typeof DeploymentEstimateQuery>;

export const DeploymentEstimateResponse = z
  .object({
    estimated_seconds: z.number(),
    /** What that rests on: launches, pull_speed or assumed. */
    eta_basis: z.enum(ETA_BASES),
    is_slow_machine: z.boolean(),
    warning_message: z.string().nullable(),
    is_cached_template: z.boolean(),
    /** Compressed bytes. */
    docker_image_size: z.int().nullable(),
    /** What must be available to rent the whole node. */
    required_balance_usd: z.number(),
    price_per_hour: z.number(),
  })
  .meta({ id: 'DeploymentEstimateResponse' });
export type DeploymentEstimateResponse = z.output<typeof DeploymentEstimateResponse>;
