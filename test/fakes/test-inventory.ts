/** An inventory as an agent with simulated GPUs answers it. */
import type { Inventory } from '#shared/agent-api/inventory.ts';

const KIB_PER_GIB = 1_048_576;

export type InventoryWish = { gpus?: number; name?: string; collectedMs?: number; seed?: string };

/** UUIDs differ by `seed`, by default the executor's id. */
export function testInventory(executorId: string, wish: InventoryWish = {}): Inventory {
  const { gpus = 2, name = 'NVIDIA H100 80GB HBM3', collectedMs = 0, seed = executorId } = wish;
  const devices = Array.from({ length: gpus }, (_, index) => ({
    index,
    uuid: `GPU-${seed.slice(0, -2)}${index.toString(16).padStart(2, '0')}`,
    name,
    memory_total_mib: 81_559,
    memory_used_mib: 0,
    utilization_percent: 0,
    temperature_c: 30,
    power_draw_w: 70,
    power_limit_w: 700,
    pci_bus_id: null,
    leased_by: null,
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
      error: null,
    },
    cpu: { model: 'Test CPU', cores: 32, utilization_percent: 1 },
    memory: { total_kib: 256 * KIB_PER_GIB, available_kib: 250 * KIB_PER_GIB },
    disk: { path: '/', total_kib: 1_000 * KIB_PER_GIB, free_kib: 900 * KIB_PER_GIB },
    os: { name: 'Debian GNU/Linux 12', kernel: '6.1', hostname: 'test', boot_id: 'b' },
    docker: {
      version: '27.0',
      storage_driver: 'overlay2',
      cgroup_version: '2',
      gpu_runtime: true,
      sysbox_runtime: false,
    },
    ports: { first: 31_000, last: 31_099, free: 100 },
  };
}
