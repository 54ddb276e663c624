/** What the agent says of its GPUs: the reading joined with the leases. Pure. */

import type { z } from 'zod';
import { MAX_TEXT_CHARS } from '#shared/agent-api/bounds.ts';
import type { GpuDevice, GpuInventory } from '#shared/agent-api/inventory.ts';
import type { GpuDriver, GpuFigures, GpuReading } from './gpu-driver.ts';

/** What is known of a GPU beside what the driver says. */
export type GpuStanding = Pick<
  GpuDevice,
  'leased_by' | 'lease_state' | 'cordoned' | 'outside_processes'
>;

export function gpuInventory(
  kind: GpuDriver['kind'],
  reading: GpuReading,
  standingOf: (device: GpuFigures) => GpuStanding,
): z.output<typeof GpuInventory> {
  return {
    driver: kind,
    driver_version: reading.driverVersion,
    cuda_version: reading.cudaVersion,
    devices: reading.devices.map((device): GpuDevice => ({ ...device, ...standingOf(device) })),
    topology: reading.topology,
    error: errorOf(reading),
  };
}

function errorOf({ error, ageMs }: GpuReading): string | null {
  if (error === null) return null;
  const since = ageMs === 0 ? '' : `; the devices are as of ${Math.round(ageMs / 1000)} s ago`;
  return `${error.slice(0, MAX_TEXT_CHARS - since.length)}${since}`;
}
