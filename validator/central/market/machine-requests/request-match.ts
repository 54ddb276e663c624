/** Matches nodes with machine requests. Pure. */
import { matchesGpuType } from '#shared/api/gpu-type.ts';
import { usdToMicro } from '#shared/api/money.ts';
import type { MachineRequest } from '../../platform/database/tables.ts';
import { isInCountry, memoryGbOf } from '../executors/node-figures.ts';
import type { FilterSubject } from '../executors/node-filters.ts';

/** Number of GPUs for which the budget must pay if the request contains no count. */
const DEFAULT_GPUS = 1;

/**
 * Returns true if the request was fulfilled with this node, or if it is pending and the node meets all conditions. A
 * condition on a figure that the node does not report is not met.
 */
export function matchesRequest(request: MachineRequest, node: FilterSubject): boolean {
  if (request.state === 'fulfilled') return request.fulfilled_executor_id === node.id;
  return request.state === 'pending' && meetsConditions(request, node);
}

function meetsConditions(request: MachineRequest, node: FilterSubject): boolean {
  const count = request.gpu_count ?? DEFAULT_GPUS;
  const { budget_uusd_per_hour: budget, min_vram_gb: leastGb, country } = request;
  return (
    count <= node.gpuCount &&
    (budget === null || usdToMicro(node.pricePerGpu) * count <= budget) &&
    (leastGb === null || (memoryGbOf(node.gpuMemoryMib) ?? Number.NEGATIVE_INFINITY) >= leastGb) &&
    matchesGpuType(node.machineName, request.gpu_class) &&
    (country === null || isInCountry(node.locationJson, country))
  );
}
