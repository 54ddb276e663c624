/** The `specs` object of a node, from the inventory that its agent measured. Pure. */

import { z } from 'zod';
import type { GpuDevice, GpuTopology, Inventory } from '#shared/api/agent/inventory.ts';
import { described } from '#shared/api/described.ts';
import type { LineFigures } from '../../platform/database/tables/executors.ts';

export const Interconnect = z.object(
  described(
    {
      nvlink: z.boolean(),
      nvlink_links: z.int().nullable(),
      gpu_pairs: z.int(),
      nvlink_pairs: z.int(),
      pcie_class: z.string().nullable(),
      p2p: z.boolean().nullable(),
      matrix: z.array(z.array(z.string())),
    },
    {
      nvlink: 'True if NVLink connects every pair of cards.',
      nvlink_links: 'Smallest number of links between two connected cards; null without NVLink.',
      gpu_pairs: 'Number of pairs of cards.',
      nvlink_pairs: 'Number of pairs that NVLink connects.',
      pcie_class:
        'Farthest PCIe connection of two cards without NVLink, `PIX` to `SYS`; null if there is none.',
      p2p: 'Always null: this is not measured.',
      matrix: "Connection of each pair of cards in nvidia-smi's notation.",
    },
  ),
);
export type Interconnect = z.output<typeof Interconnect>;

/** Nearest first. */
const PCIE_CLASSES = ['PIX', 'PXB', 'PHB', 'NODE', 'SYS'];
const NVLINK = /^NV(\d{1,3})$/;

/** Returns null if the topology is unknown. */
export function interconnectOf(topology: GpuTopology | null): Interconnect | null {
  if (topology === null) return null;
  const matrix = topology.gpus.map(({ links }) => links);
  // The matrix is symmetric, so every pair is read once.
  const pairs = matrix.flatMap((links, row) => links.slice(row + 1));
  const links = pairs.flatMap((way) => NVLINK.exec(way)?.[1] ?? []).map(Number);
  const far = PCIE_CLASSES.findLast((name) => pairs.includes(name));
  return {
    nvlink: pairs.length > 0 && links.length === pairs.length,
    nvlink_links: links.length === 0 ? null : Math.min(...links),
    gpu_pairs: pairs.length,
    nvlink_pairs: links.length,
    pcie_class: far ?? null,
    p2p: null,
    matrix,
  };
}

/** `NVLink`, or the PCIe class; null if unknown. */
export function interconnectName(interconnect: Interconnect | null): string | null {
  if (interconnect === null || interconnect.gpu_pairs === 0) return null;
  return interconnect.nvlink ? 'NVLink' : interconnect.pcie_class;
}

/**
 * Memory and disk are in KiB, GPU memory in MiB. A missing measurement is null, never 0, except where clients expect a
 * value.
 */
export const ExecutorSpecs = z
  .object(
    described(
      {
        gpu: z.object(
          described(
            {
              count: z.int(),
              driver: z.string(),
              cuda_driver: z.int().nullable(),
              details: z.array(
                z.object(
                  described(
                    {
                      name: z.string(),
                      cuda: z.string(),
                      capacity: z.int(),
                      uuid: z.string().nullable(),
                      power_limit: z.number().nullable(),
                      graphics_speed: z.number().nullable(),
                      memory_speed: z.number().nullable(),
                      pcie: z.string().nullable(),
                      pcie_speed: z.number().nullable(),
                      gpu_utilization: z.number().nullable(),
                      memory_utilization: z.number().nullable(),
                    },
                    {
                      name: 'Full name of the GPU.',
                      cuda: 'Highest CUDA version that the driver supports; empty if unknown.',
                      capacity: 'Memory of the GPU in MiB.',
                      uuid: 'UUID of the GPU, for the account that rents it; null for others, because a UUID identifies a card.',
                      power_limit: 'Power limit in watts; null if unknown.',
                      graphics_speed: 'Clock of the GPU in MHz; null if unknown.',
                      memory_speed: 'Clock of the memory in MHz; null if unknown.',
                      pcie: 'Bus id of the GPU; null if unknown.',
                      pcie_speed: 'Always null: this is not measured.',
                      gpu_utilization: 'Load in percent; null if unknown.',
                      memory_utilization: 'Used memory in percent; null if unknown.',
                    },
                  ),
                ),
              ),
            },
            {
              count: 'Number of GPUs.',
              driver: 'Version of the GPU driver; empty if the node reports none.',
              cuda_driver:
                "CUDA version in the driver's numbering, for example 12040 for 12.4; null if unknown.",
              details: 'The GPUs.',
            },
          ),
        ),
        cpu: z.object(
          described(
            { count: z.int(), model: z.string(), utilization: z.number().nullable() },
            {
              count: 'Number of processors.',
              model: 'Name of the processor.',
              utilization: 'Load in percent; null if unknown.',
            },
          ),
        ),
        ram: z.object(
          described(
            {
              total: z.int(),
              used: z.int(),
              free: z.int(),
              available: z.int(),
              utilization: z.number(),
            },
            {
              total: 'Memory in KiB.',
              used: 'Used memory in KiB.',
              free: 'Free memory in KiB.',
              available: 'Memory in KiB that processes can still get.',
              utilization: 'Used memory in percent.',
            },
          ),
        ),
        hard_disk: z.object(
          described(
            { total: z.int(), used: z.int(), free: z.int(), utilization: z.number() },
            {
              total: 'Size of the disk in KiB.',
              used: 'Used space in KiB.',
              free: 'Free space in KiB.',
              utilization: 'Used space in percent.',
            },
          ),
        ),
        network: z.object(
          described(
            { upload_speed: z.number().nullable(), download_speed: z.number().nullable() },
            {
              upload_speed: 'Upload speed in Mbit/s; null before the first measurement.',
              download_speed: 'Download speed in Mbit/s; null before the first measurement.',
            },
          ),
        ),
        os: z.string(),
        docker: z.object(
          described(
            {
              version: z.string(),
              container_id: z.string().nullable(),
              containers: z.array(z.unknown()),
            },
            {
              version: 'Version of the engine.',
              container_id: 'Always null: containers of renters are not shown.',
              containers: 'Always empty: containers of renters are not shown.',
            },
          ),
        ),
        md5_checksums: z.null(),
        gpu_processes: z.null(),
        available_port_maps: z.array(z.tuple([z.int(), z.int()])).nullable(),
        available_port_count: z.int(),
        sysbox_runtime: z.boolean(),
        is_spot: z.boolean(),
        location: z.null(),
        disk_health: z.null(),
        interconnect: Interconnect.nullable(),
      },
      {
        gpu: 'GPUs of the node.',
        cpu: 'Processors of the node.',
        ram: 'Memory of the node in KiB.',
        hard_disk: 'Disk of the node in KiB.',
        network: "Measured speed of the node's line.",
        os: 'Name of the operating system.',
        docker: 'Docker engine of the node.',
        md5_checksums: 'Always null: checksums are not computed.',
        gpu_processes: 'Always null: processes of renters are not shown.',
        available_port_maps: 'Always null: ports are assigned at the rental.',
        available_port_count: 'Number of free external ports.',
        sysbox_runtime: 'True if containers can run inside a pod.',
        is_spot: 'Always false: this marketplace has no spot nodes.',
        location: 'Always null: see `location` of the node.',
        disk_health: 'Always null: this is not measured.',
        interconnect: 'Connections between the cards; null if unknown.',
      },
    ),
  )
  .meta({ id: 'ExecutorSpecs' });
export type ExecutorSpecs = z.output<typeof ExecutorSpecs>;

/** Returns the specs, with UUIDs only of GPUs in `ownUuids`. */
export function specsOf(
  inventory: Inventory,
  line: LineFigures,
  ownUuids: readonly string[],
): ExecutorSpecs {
  const { gpu, cpu, os, docker, ports } = inventory;
  return {
    gpu: {
      count: gpu.devices.length,
      driver: gpu.driver_version ?? '',
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

/** `12.4` becomes 12.4; null if missing or malformed. */
export function cudaVersionNumber(version: string | null): number | null {
  const value = Number.parseFloat(version ?? '');
  return Number.isFinite(value) ? value : null;
}

/** `12.4` becomes 12040, the numbering of the driver library. */
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
    cuda: cuda ?? '',
    capacity: device.memory_total_mib,
    power_limit: device.power_limit_w,
    // Inventories that older versions stored lack both.
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

export function storageOf({ memory, disk }: Pick<Inventory, 'memory' | 'disk'>) {
  const usedKib = Math.max(0, memory.total_kib - memory.available_kib);
  const diskUsedKib = Math.max(0, disk.total_kib - disk.free_kib);
  return {
    ram: {
      total: memory.total_kib,
      used: usedKib,
      free: memory.available_kib,
      available: memory.available_kib,
      utilization: percent(usedKib, memory.total_kib),
    },
    hard_disk: {
      total: disk.total_kib,
      used: diskUsedKib,
      free: disk.free_kib,
      utilization: percent(diskUsedKib, disk.total_kib),
    },
  };
}

/** Percentage with one decimal. */
export function percent(part: number, whole: number): number {
  return whole <= 0 ? 0 : Math.round((part / whole) * 1000) / 10;
}
