/** The figures of an inventory that nodes are looked for by. Pure. */

import type { Inventory } from '#shared/api/agent/inventory.ts';
import type { LineFigures, MeasuredFigures } from '../../platform/database/tables/executors.ts';
import { interconnectOf } from './interconnect.ts';

/** Of a node that was never measured. */
export const UNMEASURED: MeasuredFigures & LineFigures = {
  gpu_memory_mib: null,
  cpu_cores: null,
  memory_kib: null,
  disk_free_kib: null,
  ports_free: null,
  sysbox_runtime: null,
  can_split: null,
  nvlink: null,
  download_mbps: null,
  upload_mbps: null,
};

export function figuresOf(inventory: Inventory): MeasuredFigures {
  const { gpu, docker } = inventory;
  const memories = gpu.devices.map((device) => device.memory_total_mib);
  // Inventories stored before it was known have no topology.
  const joined = interconnectOf(gpu.topology ?? null)?.nvlink ?? null;
  return {
    gpu_memory_mib: memories.length === 0 ? null : Math.min(...memories),
    cpu_cores: inventory.cpu.cores,
    memory_kib: inventory.memory.total_kib,
    disk_free_kib: inventory.disk.free_kib,
    ports_free: inventory.ports.free,
    sysbox_runtime: docker.sysbox_runtime ? 1 : 0,
    can_split: canSplit(inventory) ? 1 : 0,
    nvlink: joined === null ? null : joined ? 1 : 0,
  };
}

/** Single GPUs reach containers, and no pod can fill the disk of the others. */
function canSplit({ docker, isolation, simulated }: Inventory): boolean {
  return (docker.gpu_runtime || simulated) && isolation.disk_quota !== 'none';
}
