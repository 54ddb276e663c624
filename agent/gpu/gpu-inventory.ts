/** GPU inventory of the agent: the reading joined with leases and cordons. Pure. */
import type { z } from 'zod';
import { MAX_TEXT_CHARS } from '#shared/api/agent/bounds.ts';
import type { GpuDevice, GpuInventory } from '#shared/api/agent/inventory.ts';
import type { GpuDriver, GpuFigures, GpuReading } from './gpu-driver.ts';

/** Lease and health of a GPU. */
export type GpuAvailability = Pick<
  GpuDevice,
  'leased_by' | 'lease_state' | 'cordoned' | 'outside_processes' | 'declared_processes'
>;

/** `pids`: compute processes on the device; null if unknown. */
export type AvailabilityOf = (
  device: GpuFigures,
  pids: readonly number[] | null,
) => GpuAvailability;

export function gpuInventory(
  kind: GpuDriver['kind'],
  reading: GpuReading,
  availabilityOf: AvailabilityOf,
): z.output<typeof GpuInventory> {
  return {
    driver: kind,
    driver_version: reading.driverVersion,
    cuda_version: reading.cudaVersion,
    devices: reading.devices.map(
      (device): GpuDevice => ({ ...device, ...availabilityOf(device, pidsOn(device, reading)) }),
    ),
    topology: reading.topology,
    error: errorOf(reading),
  };
}

/** Returns the processes on a whole card; null for a MIG device, because the driver lists processes by card. */
function pidsOn({ uuid, mig }: GpuFigures, { processes }: GpuReading): readonly number[] | null {
  if (processes === null || mig !== null) return null;
  return processes.filter((each) => each.uuid === uuid).map(({ pid }) => pid);
}

function errorOf({ error, ageMs }: GpuReading): string | null {
  if (error === null) return null;
  const since = ageMs === 0 ? '' : `; the devices are as of ${Math.round(ageMs / 1000)} s ago`;
  return `${error.slice(0, MAX_TEXT_CHARS - since.length)}${since}`;
}
