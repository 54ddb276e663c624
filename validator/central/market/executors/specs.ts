/** The `specs` object of a node row, from the inventory that its agent measured (contract 3.1). Pure. */

import { z } from 'zod';
import type { GpuDevice, Inventory } from '#shared/api/agent/inventory.ts';
import type { LineFigures } from '../../platform/database/tables/executors.ts';
import { Interconnect, interconnectOf } from './interconnect.ts';
import { percent, storageOf } from './storage.ts';

/** Mind the units: memory and disk are KiB, GPU memory MiB. What is not measured is null, never 0. */
export const ExecutorSpecs = z.object({
  gpu: z.object({
    count: z.int(),
    driver: z.string().nullable(),
    cuda_driver: z.int().nullable(),
    details: z.array(
      z.object({
        name: z.string(),
        cuda: z.string().nullable(),
        capacity: z.int(),
        /** Of the caller’s own GPUs alone: a card is known by it, and whoever knows it could offer it as theirs. */
        uuid: z.string().nullable(),
        power_limit: z.number().nullable(),
        graphics_speed: z.number().nullable(),
        memory_speed: z.number().nullable(),
        pcie: z.string().nullable(),
        pcie_speed: z.number().nullable(),
        gpu_utilization: z.number().nullable(),
        memory_utilization: z.number().nullable(),
      }),
    ),
  }),
  cpu: z.object({ count: z.int(), model: z.string(), utilization: z.number().nullable() }),
  ram: z.object({
    total: z.int(),
    used: z.int(),
    free: z.int(),
    available: z.int(),
    utilization: z.number(),
  }),
  hard_disk: z.object({ total: z.int(), used: z.int(), free: z.int(), utilization: z.number() }),
  network: z.object({
    upload_speed: z.number().nullable(),
    download_speed: z.number().nullable(),
  }),
  os: z.string(),
  docker: z.object({
    version: z.string(),
    container_id: z.string().nullable(),
    containers: z.array(z.unknown()),
  }),
  md5_checksums: z.null(),
  gpu_processes: z.null(),
  available_port_maps: z.array(z.tuple([z.int(), z.int()])).nullable(),
  available_port_count: z.int(),
  sysbox_runtime: z.boolean(),
  is_spot: z.boolean(),
  location: z.null(),
  disk_health: z.null(),
  interconnect: Interconnect.nullable(),
});
export type ExecutorSpecs = z.output<typeof ExecutorSpecs>;

/** The wire form of `inventory` and what was measured of the line; of `ownUuids` alone UUIDs are shown. */
export function specsOf(
  inventory: Inventory,
  line: LineFigures,
  ownUuids: readonly string[],
): ExecutorSpecs {
  const { gpu, cpu, os, docker, ports } = inventory;
  return {
    gpu: {
      count: gpu.devices.length,
      driver: gpu.driver_version,
      cuda_driver: cudaDriverNumber(gpu.cuda_version),
      details: gpu.devices.map((device) => ({
        ...detailOf(device, gpu.cuda_version),
        uuid: ownUuids.includes(device.uuid) ? device.uuid : null,
      })),
    },
    cpu: { count: cpu.cores, model: cpu.model, utilization: cpu.utilization_percent },
    ...storageOf(inventory),
    network: { upload_speed: line.upload_mbps, download_speed: line.download_mbps },
    os: os.name,
    docker: { version: docker.version, container_id: null, containers: [] },
    md5_checksums: null,
    gpu_processes: null,
    available_port_maps: null,
    available_port_count: ports.free,
    sysbox_runtime: docker.sysbox_runtime,
    is_spot: false,
    location: null,
    disk_health: null,
    interconnect: interconnectOf(gpu.topology ?? null),
  };
}

/** `12.4` -> 12.4; null when absent or unreadable. */
export function cudaVersionNumber(version: string | null): number | null {
  const value = Number.parseFloat(version ?? '');
  return Number.isFinite(value) ? value : null;
}

/** `12.4` -> 12040, as the driver library itself numbers its versions. */
function cudaDriverNumber(version: string | null): number | null {
  const match = /^(\d+)\.(\d+)/.exec(version ?? '');
  return match === null ? null : Number(match[1]) * 1000 + Number(match[2]) * 10;
}

function detailOf(
  device: GpuDevice,
  cuda: string | null,
): Omit<ExecutorSpecs['gpu']['details'][number], 'uuid'> {
  return {
    name: device.name,
    cuda,
    capacity: device.memory_total_mib,
    power_limit: device.power_limit_w,
    // Inventories stored before they were known have neither.
    graphics_speed: device.graphics_clock_mhz ?? null,
    memory_speed: device.memory_clock_mhz ?? null,
    pcie: device.pci_bus_id,
    pcie_speed: null,
    gpu_utilization: device.utilization_percent,
    memory_utilization:
      device.memory_used_mib === null
        ? null
        : percent(device.memory_used_mib, device.memory_total_mib),
  };
}
