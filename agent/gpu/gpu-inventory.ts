/** What the agent says of its GPUs: the reading joined with the leases. Pure. */

import type { z } from 'zod';
import { MAX_TEXT_CHARS } from '#shared/api/agent/bounds.ts';
import type { GpuDevice, GpuInventory } from '#shared/api/agent/inventory.ts';
import type { GpuDriver, GpuFigures, GpuReading } from './gpu-driver.ts';

/** What is known of a GPU beside what the driver says. */
export type GpuStanding = Pick<
  GpuDevice,
  'leased_by' | 'lease_state' | 'cordoned' | 'outside_processes'
>;

/** Of a device, given the processes on it; null where these are not known. */
export type StandingOf = (device: GpuFigures, pids: readonly number[] | null) => GpuStanding;

export function gpuInventory(
  kind: GpuDriver['kind'],
  reading: GpuReading,
  standingOf: StandingOf,
): z.output<typeof GpuInventory> {
  return {
    driver: kind,
    driver_version: reading.driverVersion,
    cuda_version: reading.cudaVersion,
    devices: reading.devices.map(
      (device): GpuDevice => ({ ...device, ...standingOf(device, pidsOn(device, reading)) }),
    ),
    topology: reading.topology,
    error: errorOf(reading),
  };
}

/** The driver lists processes by card, not by its parts. */
function pidsOn({ uuid, mig }: GpuFigures, { processes }: GpuReading): readonly number[] | null {
  if (processes === null || mig !== null) return null;
  return processes.filter((each) => each.uuid === uuid).map(({ pid }) => pid);
}

function errorOf({ error, ageMs }: GpuReading): string | null {
  if (error === null) return null;
  const since = ageMs === 0 ? '' : `; the devices are as of ${Math.round(ageMs / 1000)} s ago`;
  return `${error.slice(0, MAX_TEXT_CHARS - since.length)}${since}`;
}
