/** Which slots an executor has after its GPUs were measured anew. Pure. */
import { type GpuDevice, isRentable } from '#shared/api/agent/inventory.ts';
import type { GpuSlot } from '../../platform/database/tables.ts';

/**
 * The free slots to have beside the `held` ones, which stay as they are. A device that its host keeps from
 * new pods has none. A device keeps its own index
 * where no held slot has it, else it gets the lowest one left.
 */
export function freeSlotsFor(
  executorId: string,
  held: readonly GpuSlot[],
  devices: readonly GpuDevice[],
): GpuSlot[] {
  const heldUuids = new Set(held.map((slot) => slot.gpu_uuid));
  const used = new Set(held.map((slot) => slot.idx));
  const added = devices.filter((device) => isRentable(device) && !heldUuids.has(device.uuid));
  return added
    .toSorted((a, b) => a.index - b.index)
    .map((device) => {
      const idx = used.has(device.index) ? lowestFree(used) : device.index;
      used.add(idx);
      return { executor_id: executorId, idx, gpu_uuid: device.uuid, pod_id: null };
    });
}

function lowestFree(used: ReadonlySet<number>): number {
  let index = 0;
  while (used.has(index)) index += 1;
  return index;
}
