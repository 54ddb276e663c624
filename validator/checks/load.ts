/** What is at work on a host, without what our own trials put on it. Pure. */
import type { GpuDevice, Inventory } from '#shared/api/agent/inventory.ts';
import type { Load } from './measured.ts';

/** The load that an inventory tells. */
export function loadOf({ cpu, gpu }: Inventory): Load {
  return {
    cpu_percent: cpu.utilization_percent,
    cards: gpu.devices.map(({ uuid, utilization_percent, memory_used_mib, processes }) => ({
      ...{ uuid, utilization_percent, memory_used_mib, processes },
    })),
  };
}

const NOT_TOLD = { utilization_percent: null, memory_used_mib: null, processes: null };

/** The inventory with the load of before; of a card that was not there then, none is known. Null: as it is. */
export function withLoad(inventory: Inventory, load: Load | null): Inventory {
  if (load === null) return inventory;
  const devices = inventory.gpu.devices.map((device): GpuDevice => {
    const before = load.cards.find(({ uuid }) => uuid === device.uuid);
    return { ...device, ...(before ?? NOT_TOLD) };
  });
  return {
    ...inventory,
    cpu: { ...inventory.cpu, utilization_percent: load.cpu_percent },
    gpu: { ...inventory.gpu, devices },
  };
}
