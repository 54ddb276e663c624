import { expect, it } from 'vitest';
import type { MachineRequest } from '../../platform/database/tables.ts';
import type { FilterSubject } from '../executors/node-filters.ts';
import { matchesRequest } from './request-match.ts';

const NODE: FilterSubject = {
  id: 'node',
  machineName: 'NVIDIA H100 80GB HBM3',
  pricePerGpu: 2.2,
  gpuCount: 4,
  lat: null,
  lon: null,
  locationJson: JSON.stringify({ country: 'France', country_code: 'FR' }),
  // 80 GiB: 85.89 GB.
  gpuMemoryMib: 81_920,
  collateralDeposited: false,
};

const REQUEST: MachineRequest = {
  id: 'r',
  account_id: 'a',
  gpu_class: 'H100',
  gpu_count: null,
  country: null,
  budget_uusd_per_hour: null,
  min_vram_gb: null,
  notes: null,
  notify: 1,
  state: 'pending',
  fulfilled_executor_id: null,
  created_at: 1,
  updated_at: 1,
};

it.each<[what: string, Partial<MachineRequest>, Partial<FilterSubject>, boolean]>([
  ['the short type', {}, {}, true],
  ['the full name', { gpu_class: 'nvidia h100 80gb hbm3' }, {}, true],
  ['another GPU', { gpu_class: 'H200' }, {}, false],
  ['a MIG slice', {}, { machineName: 'NVIDIA H100 80GB HBM3 MIG 3g.40gb' }, false],
  ['as many GPUs as are free', { gpu_count: 4 }, {}, true],
  ['more GPUs than are free', { gpu_count: 5 }, {}, false],
  ['no free GPU', {}, { gpuCount: 0 }, false],
  ['a budget of exactly the price of all requested GPUs', budget(4, 8_800_000), {}, true],
  ['a budget one micro-dollar below that price', budget(4, 8_799_999), {}, false],
  ['a budget of the price of one GPU, without a count', budget(null, 2_200_000), {}, true],
  ['a budget below the price of one GPU, without a count', budget(null, 2_199_999), {}, false],
  ['the country by its code', { country: ' fr ' }, {}, true],
  ['the country by its name', { country: 'FRANCE' }, {}, true],
  ['another country', { country: 'DE' }, {}, false],
  ['a node without a country', { country: 'FR' }, { locationJson: null }, false],
  ['as much memory as the card has', { min_vram_gb: 85.89 }, {}, true],
  ['more memory than the card has', { min_vram_gb: 85.9 }, {}, false],
  ['memory that was not measured', { min_vram_gb: 0 }, { gpuMemoryMib: null }, false],
  ['a cancelled request', { state: 'cancelled' }, {}, false],
  ['the node that fulfilled the request', fulfilledBy('node'), { gpuCount: 0 }, true],
  ['a node other than the one that fulfilled the request', fulfilledBy('other'), {}, false],
])('matches a request and a node by %s', (_, request, node, expected) => {
  expect(matchesRequest({ ...REQUEST, ...request }, { ...NODE, ...node })).toBe(expected);
});

function budget(count: number | null, uusd: number): Partial<MachineRequest> {
  return { gpu_count: count, budget_uusd_per_hour: uusd };
}

function fulfilledBy(nodeId: string): Partial<MachineRequest> {
  return { state: 'fulfilled', fulfilled_executor_id: nodeId };
}
