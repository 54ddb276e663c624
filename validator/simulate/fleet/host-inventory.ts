/** The inventory of a modelled host. */
import type { HostSources, Inventory } from '#shared/api/agent/inventory.ts';

const KIB_PER_GIB = 1_048_576;

/** Kernel sources of a Linux host without cards. */
export const KERNEL_SOURCES: HostSources = {
  pci_gpus: 0,
  driver_gpus: null,
  driver_library_sha256: null,
  cpus_present: 1_024,
  memory_kib: null,
  disk_kib: null,
  disk_writable: true,
};

/** Cards of a host: their model as the driver names it, their number, and the memory of each. */
export type Cards = { name: string; count: number; memoryMib: number };

export type InventoryOptions = {
  gpus?: number;
  name?: string;
  collectedMs?: number;
  seed?: string;
  /** Memory of each card. */
  memoryMib?: number;
};

/** Inventory whose GPU UUIDs are derived from `seed`, by default the executor's id. */
export function hostInventory(executorId: string, options: InventoryOptions = {}): Inventory {
  const { gpus = 2, name = 'NVIDIA H100 80GB HBM3', memoryMib = 81_559 } = options;
  const { collectedMs = 0, seed = executorId } = options;
  const devices = Array.from({ length: gpus }, (_, index) => ({
    index,
    uuid: `GPU-${seed.slice(0, -2)}${index.toString(16).padStart(2, '0')}`,
    name,
    memory_total_mib: memoryMib,
    memory_used_mib: 0,
    utilization_percent: 0,
    temperature_c: 30,
    power_draw_w: 70,
    power_limit_w: 700,
    power_enforced_limit_w: 700,
    power_default_limit_w: 700,
    power_max_limit_w: 700,
    pci_bus_id: null,
    graphics_clock_mhz: 210,
    memory_clock_mhz: 405,
    pcie_link: null,
    ecc_errors: 0,
    recovery_action: 'None',
    processes: 0,
    compute_processes: 0,
    graphics_processes: 0,
    mig: null,
    leased_by: null,
    lease_state: 'free' as const,
    cordoned: null,
  }));
  return {
    executor_id: executorId,
    agent_version: '0.1.0',
    collected_ms: collectedMs,
    simulated: true,
    gpu: {
      driver: 'simulated',
      driver_version: '570.86.15',
      cuda_version: '12.8',
      devices,
      topology: null,
      error: null,
    },
    cpu: { model: 'Test CPU', cores: 32, utilization_percent: 1 },
    memory: { total_kib: 256 * KIB_PER_GIB, available_kib: 250 * KIB_PER_GIB },
    disk: { path: '/', total_kib: 1_000 * KIB_PER_GIB, free_kib: 900 * KIB_PER_GIB },
    os: { name: 'Debian GNU/Linux 12', kernel: '6.1', hostname: 'test', boot_id: 'b' },
    hardware: null,
    docker: {
      version: '27.0',
      storage_driver: 'overlay2',
      cgroup_version: '2',
      gpu_runtime: true,
      sysbox_runtime: false,
    },
    isolation: { firewall: 'enforced', disk_quota: 'kernel', seccomp: true },
    ports: { first: 31_000, last: 31_099, free: 100 },
    orphans: [],
    sources: KERNEL_SOURCES,
    update: null,
  };
}
