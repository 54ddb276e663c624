/** What leasing needs of the GPUs, from the driver: which there are, and whether a process is left on one. */
import type { GpuDriver } from './gpu-driver.ts';
import type { GpuSource } from './gpu-lease.ts';
import type { NvidiaSmi } from './nvidia-smi.ts';

const PROCESS_ARGS = ['--query-compute-apps=gpu_uuid,pid', '--format=csv,noheader'];

/** `smi` is asked for real cards only: on simulated ones nothing ever computes. */
export function createGpuSource(driver: GpuDriver, smi: NvidiaSmi): GpuSource {
  return {
    gpuMode: () => driver.kind,
    async listGpus() {
      const { devices, error } = await driver.read();
      if (devices.length === 0 && error !== null) throw new Error(error);
      return devices;
    },
    async isFree(uuid) {
      if (driver.kind !== 'nvidia') return true;
      const { stdout, complete, problem } = await smi.run(PROCESS_ARGS);
      // A run that failed lists no process either: it has not seen the GPU free.
      if (!complete || problem !== null) throw new Error(problem ?? 'nvidia-smi was cut off');
      return !stdout.includes(uuid);
    },
  };
}
