/** What leasing needs of the GPUs, from the driver: which there are, and whether a process is left on one. */
import type { GpuDriver } from './gpu-driver.ts';
import type { GpuSource } from './gpu-lease.ts';

export function createGpuSource(driver: GpuDriver): GpuSource {
  return {
    gpuMode: () => driver.kind,
    async listGpus() {
      const { devices, error } = await driver.read();
      if (devices.length === 0 && error !== null) throw new Error(error);
      return devices;
    },
    isFree: (uuid) => driver.isFree(uuid),
  };
}
