/** Which nodes answer a machine request (contract 8). Pure. */
import { matchesGpuType } from '#shared/api/gpu-type.ts';
import { usdToMicro } from '#shared/api/money.ts';
import type { MachineRequest } from '../../platform/database/tables.ts';
import { isInCountry, memoryGbOf } from '../executors/node-figures.ts';
import type { FilterSubject } from '../executors/node-filters.ts';

/** Where a request does not say how many GPUs: its budget has to pay for one at least. */
const FEWEST_GPUS = 1;

/** Whether the node was added for it or, while it is open, has what it asks for: a figure that is not reported fails. */
export function answers(request: MachineRequest, node: FilterSubject): boolean {
  if (request.state === 'fulfilled') return request.fulfilled_executor_id === node.id;
  return request.state === 'pending' && fits(request, node);
}

function fits(request: MachineRequest, node: FilterSubject): boolean {
  const count = request.gpu_count ?? FEWEST_GPUS;
  const { budget_uusd_per_hour: budget, min_vram_gb: leastGb, country } = request;
  return (
    count <= node.gpuCount &&
    (budget === null || usdToMicro(node.pricePerGpu) * count <= budget) &&
    (leastGb === null || (memoryGbOf(node.gpuMemoryMib) ?? Number.NEGATIVE_INFINITY) >= leastGb) &&
    matchesGpuType(node.machineName, request.gpu_class) &&
    (country === null || isInCountry(node.locationJson, country))
  );
}
