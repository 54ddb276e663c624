/** Estimates how soon a pod of a template would run on a node, and what it would cost. */

import { microToUsd } from '#shared/api/money.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { rentalMinimum } from '../../money/metering/cost.ts';
import type { Database, Template } from '../../platform/database/tables.ts';
import { visibleTemplate } from '../templates/template.service.ts';
import type {
  DeploymentEstimateQuery,
  DeploymentEstimateResponse,
} from './deployment-estimate.schemas.ts';
import { requireExecutor } from './executor.service.ts';
import { gpuTotalOf } from './executor-response.ts';
import { type LaunchHistory, launchEstimate, slownessWarning } from './launch-estimate.ts';
import { noticeWarning } from './notice-period.ts';

const SECOND_MS = 1_000;

export type DeploymentEstimates = (
  accountId: string,
  query: DeploymentEstimateQuery,
) => Promise<DeploymentEstimateResponse>;

export type DeploymentEstimatesDeps = {
  db: Database;
  /** Past launches and pulls of the template's image on the node. */
  history(executorId: string, template: Template): Promise<LaunchHistory>;
};

/** Throws 404 for a node or a template that does not exist. */
export function createDeploymentEstimates({
  db,
  history,
}: DeploymentEstimatesDeps): DeploymentEstimates {
  return async (accountId, { template_id: templateId, executor_id: executorId }) => {
    const executor = await requireExecutor(db, executorId);
    const template = await visibleTemplate(db, accountId, templateId);
    if (template === undefined) {
      throw new ApiError('template_not_found', 'Template not found');
    }
    const past = await history(executorId, template);
    const { ms, basis, isCached } = launchEstimate(past);
    const warning = slownessWarning(past.bytesPerSecond);
    const price = executor.price_uusd_per_gpu_hour;
    const total = gpuTotalOf(executor);
    return {
      estimated_seconds: Math.max(1, Math.ceil(ms / SECOND_MS)),
      eta_basis: basis,
      is_slow_machine: warning !== null,
      warning_message: [warning, noticeWarning(executor)].filter(isText).join(' ') || null,
      is_cached_template: isCached,
      docker_image_size: template.docker_image_size ?? past.imageBytes,
      required_balance_usd: microToUsd(rentalMinimum(price, total)),
      price_per_hour: microToUsd(price * total),
    };
  };
}

function isText(text: string | null): text is string {
  return text !== null;
}
