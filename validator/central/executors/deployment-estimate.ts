/** How soon a pod of a template would run on a node, from what was seen before (contract 3.2). */
import { z } from 'zod';
import { ApiError } from '#shared/errors.ts';
import { microToUsd } from '#shared/money.ts';
import { rentalFloor } from '../balance/balance.service.ts';
import type { Database } from '../db/tables.ts';
import { visibleTemplate } from '../templates/template.service.ts';
import { gpuTotalOf } from './executor.row.ts';
import { requireExecutor } from './executor.service.ts';

/** For a template that was never seen on the node: its image must be pulled. */
const PULL_SECONDS = 120;
/** A node whose fastest launch took longer counts as slow. */
const SLOW_SECONDS = 300;
const SECOND_MS = 1_000;

export const DeploymentEstimateQuery = z.object({ template_id: z.uuid(), executor_id: z.uuid() });
export type DeploymentEstimateQuery = z.output<typeof DeploymentEstimateQuery>;

export const DeploymentEstimateResponse = z
  .object({
    estimated_seconds: z.number(),
    is_slow_machine: z.boolean(),
    warning_message: z.string().nullable(),
    is_cached_template: z.boolean(),
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
  /** Milliseconds from rent to running of the latest pods of the template on the node. */
  launchTimes(executorId: string, templateId: string): Promise<number[]>;
};

/** Throws 404 for a node or template that is not there. */
export function createDeploymentEstimates({
  db,
  launchTimes,
}: DeploymentEstimatesDeps): DeploymentEstimates {
  return async (accountId, { template_id: templateId, executor_id: executorId }) => {
    const executor = await requireExecutor(db, executorId);
    const template = await visibleTemplate(db, accountId, templateId);
    if (template === undefined) {
      throw new ApiError('template_not_found', 'Template not found');
    }
    const times = await launchTimes(executorId, templateId);
    const isCached = times.length > 0;
    // The fastest one: the image was there, as it will be for the next.
    const fastest = Math.max(1, Math.ceil(Math.min(...times) / SECOND_MS));
    const isSlow = isCached && fastest > SLOW_SECONDS;
    const price = executor.price_uusd_per_gpu_hour;
    const total = gpuTotalOf(executor);
    return {
      estimated_seconds: isCached ? fastest : PULL_SECONDS,
      is_slow_machine: isSlow,
      warning_message: isSlow ? `Past launches on this node took ${fastest} s or more` : null,
      is_cached_template: isCached,
      docker_image_size: template.docker_image_size,
      required_balance_usd: microToUsd(rentalFloor(price, total)),
      price_per_hour: microToUsd(price * total),
    };
  };
}
