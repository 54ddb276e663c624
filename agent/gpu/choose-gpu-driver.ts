/** Chooses the GPU driver of a process, once at its start. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { GpuDriver } from './gpu-driver.ts';
import { createNvidiaDriver } from './nvidia/driver.ts';
import { type NvidiaSmi, PROGRAM_MISSING } from './nvidia/nvidia-smi.ts';
import { createSimulatedDriver } from './simulated-gpus.ts';

export const GPU_MODES = ['auto', 'nvidia', 'simulated', 'none'] as const;
export type GpuMode = (typeof GPU_MODES)[number];

export type GpuDriverOptions = {
  /** `auto` never chooses simulated GPUs; they must be requested. */
  mode: GpuMode;
  /** Cards for `simulated`, from `parseSimulatedGpus`. */
  simulatedGpus: readonly string[];
  executorId: string;
  smi: NvidiaSmi;
  clock: Clock;
};

export async function chooseGpuDriver(options: GpuDriverOptions): Promise<GpuDriver> {
  const { mode, smi, clock, executorId, simulatedGpus } = options;
  if (mode === 'none') return noGpus;
  if (mode === 'simulated') return createSimulatedDriver(executorId, simulatedGpus);
  const nvidia = createNvidiaDriver({ smi, clock });
  return mode === 'nvidia' || (await hasNvidia(nvidia)) ? nvidia : noGpus;
}

/** Messages of nvidia-smi on a host without driver or card. */
const NO_GPU = /no devices were found|couldn't communicate with the nvidia driver/i;

/**
 * Returns true if the host has NVIDIA's driver. A driver that hangs or has mismatched versions counts as present, so
 * that the fault is reported.
 */
async function hasNvidia(nvidia: GpuDriver): Promise<boolean> {
  const { devices, error } = await nvidia.read();
  if (devices.length > 0) return true;
  return error !== null && !NO_GPU.test(error) && !error.startsWith(PROGRAM_MISSING);
}

const noGpus: GpuDriver = {
  kind: 'none',
  read: () =>
    Promise.resolve({
      driverVersion: null,
      cudaVersion: null,
      devices: [],
      cards: [],
      parts: [],
      processes: [],
      topology: null,
      error: null,
      ageMs: 0,
      exitCode: null,
    }),
  health: () => Promise.resolve(null),
  isFree: () => Promise.resolve(true),
};
