/** How soon a pod of a template would run on a node, from what was seen before (contract 3.2). */

import { microToUsd } from '#shared/api/money.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { rentalFloor } from '../../money/metering/rental-floor.ts';
import type { Database, Template } from '../../platform/database/tables.ts';
import { visibleTemplate } from '../templates/template.service.ts';
import type {
  DeploymentEstimateQuery,
  DeploymentEstimateResponse,
} from './deployment-estimate.schemas.ts';
import { gpuTotalOf } from './executor.row.ts';
import { requireExecutor } from './executor.service.ts';
import { type LaunchKnowledge, launchEstimate, slownessWarning } from './launch-estimate.ts';
import { noticeWarning } from './notice-period.ts';

const SECOND_MS = 1_000;

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
      warning_message: [warning, noticeWarning(executor)].filter(isSaid).join(' ') || null,
      is_cached_template: isCached,
      docker_image_size: template.docker_image_size ?? known.imageBytes,
      required_balance_usd: microToUsd(rentalFloor(price, total)),
      price_per_hour: microToUsd(price * total),
    };
  };
}

function isSaid(text: string | null): text is string {
  return text !== null;
}
