/** The `specs` object of a node, from the inventory that its agent measured. Pure. */
import { z } from 'zod';
import type { GpuDevice, GpuTopology, Inventory } from '#shared/api/agent/inventory.ts';
import type { LineFigures } from '../../platform/database/tables/executors.ts';

export const Interconnect = z.object({
  /** True if NVLink connects every pair of cards. */
  nvlink: z.boolean(),
  /** Smallest number of links between two connected cards. */
  nvlink_links: z.int().nullable(),
  gpu_pairs: z.int(),
  nvlink_pairs: z.int(),
  /** Farthest PCIe connection of two cards without NVLink: `PIX` to `SYS`. */
  pcie_class: z.string().nullable(),
  /** Not measured. */
  p2p: z.boolean().nullable(),
  /** Connection of each pair of cards in nvidia-smi's notation. */
  matrix: z.array(z.array(z.string())),
});
export type Interconnect = z.output<typeof Interconnect>;

/** Nearest first. */
const PCIE_CLASSES = ['PIX', 'PXB', 'PHB', 'NODE', 'SYS'];
const NVLINK = /^NV(\d{1,3})$/;

/** Null if the topology is unknown. */
export function interconnectOf(topology: GpuTopology | null): Interconnect | null {
  if (topology === null) return null;
  const matrix = topology.gpus.map(({ links }) => links);
  // The matrix is symmetric: every pair once.
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

/** Memory and disk are in KiB, GPU memory in MiB. A missing measurement is null, never 0. */
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
        /** Present only for the caller's own GPUs: a UUID identifies a card, and others could offer it as theirs. */
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

/** `12.4` -> 12.4; null if missing or malformed. */
export function cudaVersionNumber(version: string | null): number | null {
  const value = Number.parseFloat(version ?? '');
  return Number.isFinite(value) ? value : null;
}

/** `12.4` -> 12040, the driver library's own numbering. */
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
    // Inventories stored by older versions lack both.
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
