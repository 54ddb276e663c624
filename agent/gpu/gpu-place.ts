/** Where a pod's GPUs lie on this host, asked when its container is made. */
import type { PodSpec } from '#shared/api/agent/pod.ts';
import { type CpuPlace, cpuPlace } from './cpu-place.ts';
import type { GpuDriver } from './gpu-driver.ts';
import type { NumaNode } from './numa.ts';

/** Null when nothing is to be said of its processors: no real GPUs, one node only, or no knowledge. */
export type PlaceOf = (spec: Pick<PodSpec, 'gpu_uuids' | 'limits'>) => Promise<CpuPlace | null>;

export function createPlaceOf(driver: GpuDriver, numaNodes: () => Promise<NumaNode[]>): PlaceOf {
  return async ({ gpu_uuids: uuids, limits }) => {
    if (driver.kind !== 'nvidia' || uuids.length === 0) return null;
    const nodes = await numaNodes();
    if (nodes.length < 2) return null;
    const { devices, topology } = await driver.read();
    const cardUuids = uuids.map(
      (uuid) => devices.find((device) => device.uuid === uuid)?.mig?.parent_uuid ?? uuid,
    );
    const { cpu_cores: cpuCores, memory_bytes: memoryBytes } = limits;
    return cpuPlace({ cardUuids, cpuCores, memoryBytes }, topology, nodes);
  };
}
