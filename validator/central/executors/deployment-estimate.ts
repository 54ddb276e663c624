/** How soon a pod of a template would run on a node, from what was seen before (contract 3.2). */
import { z } from 'zod';
import { ApiError } from '#shared/errors.ts';
import { microToUsd } from '#shared/money.ts';
import { rentalFloor } from '../balance/balance.service.ts';
import type { Database, Template } from '../db/tables.ts';
import { visibleTemplate } from '../templates/template.service.ts';
import { Uuid } from '../wire.ts';
import { gpuTotalOf } from './executor.row.ts';
import { requireExecutor } from './executor.service.ts';
import {
  ETA_BASES,
  type LaunchKnowledge,
  launchEstimate,
  slownessWarning,
} from './launch-estimate.ts';

const SECOND_MS = 1_000;

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

export type DeploymentEstimates = (
  accountId: string,
  query: DeploymentEstimateQuery,
) => Promise<DeploymentEstimateResponse>;

export type DeploymentEstimatesDeps = {
  db: Database;
  /** What was seen of the node and the template's image. */
  knowledge(executorId: string, template: Template): Promise<LaunchKnowledge>;
};

/** Throws 404 for a node or template that is not there. */
export function createDeploymentEstimates({
  db,
  knowledge,
}: DeploymentEstimatesDeps): DeploymentEstimates {
  return async (accountId, { template_id: templateId, executor_id: executorId }) => {
    const executor = await requireExecutor(db, executorId);
    const template = await visibleTemplate(db, accountId, templateId);
    if (template === undefined) {
      throw new ApiError('template_not_found', 'Template not found');
    }
    const known = await knowledge(executorId, template);
    const { ms, basis, isCached } = launchEstimate(known);
    const warning = slownessWarning(known.bytesPerSecond);
    const price = executor.price_uusd_per_gpu_hour;
    const total = gpuTotalOf(executor);
    return {
      estimated_seconds: Math.max(1, Math.ceil(ms / SECOND_MS)),
      eta_basis: basis,
      is_slow_machine: warning !== null,
      warning_message: warning,
      is_cached_template: isCached,
      docker_image_size: template.docker_image_size ?? known.imageBytes,
      required_balance_usd: microToUsd(rentalFloor(price, total)),
      price_per_hour: microToUsd(price * total),
    };
  };
}
