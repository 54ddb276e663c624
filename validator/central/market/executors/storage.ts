/** Memory and disk of an inventory as the wire shows them, in KiB (contract 3.1, specs). Pure. */
import type { Inventory } from '#shared/api/agent/inventory.ts';

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

/** Share of `part` in `whole`, 0-100 with one decimal. */
export function percent(part: number, whole: number): number {
  return whole <= 0 ? 0 : Math.round((part / whole) * 1000) / 10;
}
