/** What the agent says of its GPUs: the reading joined with the leases. Pure. */

import type { z } from 'zod';
import type { GpuDevice, GpuInventory } from '#shared/agent-api/inventory.ts';
import type { GpuDriver, GpuReading } from './gpu-driver.ts';

/** `leasedBy` gives the id of the pod that holds a GPU, if any. */
export function gpuInventory(
  kind: GpuDriver['kind'],
  reading: GpuReading,
  leasedBy: (uuid: string) => string | null,
): z.output<typeof GpuInventory> {
  return {
    driver: kind,
    driver_version: reading.driverVersion,
    cuda_version: reading.cudaVersion,
    devices: reading.devices.map(
      (device): GpuDevice => ({ ...device, leased_by: leasedBy(device.uuid) }),
    ),
    error: errorOf(reading),
  };
}

function errorOf({ error, ageMs }: GpuReading): string | null {
  if (error === null || ageMs === 0) return error;
  return `${error}; the devices are as of ${Math.round(ageMs / 1000)} s ago`;
}
