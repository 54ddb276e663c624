/** Where the agent's knowledge of GPUs comes from: the port. */
import type { GPU_DRIVERS, GpuDevice } from '#shared/agent-api/inventory.ts';

/** One GPU as measured; who holds it is the leases' business. */
export type GpuFigures = Omit<GpuDevice, 'leased_by'>;

export type GpuReading = {
  driverVersion: string | null;
  cudaVersion: string | null;
  devices: readonly GpuFigures[];
  /** Why some or all GPUs could not be read, in words; null when they could. */
  error: string | null;
  /** Age of `devices`: above 0 when the present attempt failed and these are the last good figures. */
  ageMs: number;
};

export type GpuDriver = {
  kind: (typeof GPU_DRIVERS)[number];
  /** Never rejects; nvidia-smi that hangs costs at most its own deadline. */
  read(): Promise<GpuReading>;
};
