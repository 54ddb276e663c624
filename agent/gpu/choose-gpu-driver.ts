/** Which GPU driver a process uses, decided once at its start. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { GpuDriver } from './gpu-driver.ts';
import { createNvidiaDriver } from './nvidia/driver.ts';
import { type NvidiaSmi, PROGRAM_MISSING } from './nvidia/nvidia-smi.ts';
import { createSimulatedDriver } from './simulated-gpus.ts';

export const GPU_MODES = ['auto', 'nvidia', 'simulated', 'none'] as const;
export type GpuMode = (typeof GPU_MODES)[number];

export type GpuDriverOptions = {
  /** `auto` never gives simulated GPUs: those are for whoever asks for them. */
  mode: GpuMode;
  /** Names for `simulated`, from `parseSimulatedGpus`. */
  simulatedGpus: readonly string[];
  executorId: string;
  smi: NvidiaSmi;
  clock: Clock;
};

/** The driver for `mode`, kept for the life of the process. */
export async function chooseGpuDriver(options: GpuDriverOptions): Promise<GpuDriver> {
  const { mode, smi, clock, executorId, simulatedGpus } = options;
  if (mode === 'none') return noGpus;
  if (mode === 'simulated') return createSimulatedDriver(executorId, simulatedGpus);
  const nvidia = createNvidiaDriver({ smi, clock });
  return mode === 'nvidia' || (await hasNvidia(nvidia)) ? nvidia : noGpus;
}

/** What nvidia-smi says on a host that has the program but no driver or no card. */
const NO_GPU = /no devices were found|couldn't communicate with the nvidia driver/i;

/** A driver that hangs or mismatches is a fault to be shown, not an absence of GPUs. */
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
