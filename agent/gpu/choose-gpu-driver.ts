/** Chooses the GPU driver of a process. `auto` chooses again while NVIDIA's driver is not loaded yet. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { GpuDriver, GpuReading } from './gpu-driver.ts';
import { createNvidiaDriver } from './nvidia/driver.ts';
import { type NvidiaSmi, PROGRAM_MISSING } from './nvidia/nvidia-smi.ts';
import type { PciCard } from './pci-bus.ts';
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
  /** Rejects if the bus cannot be read. */
  cardsOnBus(): Promise<readonly PciCard[]>;
};

export async function chooseGpuDriver(options: GpuDriverOptions): Promise<GpuDriver> {
  const { mode, smi, clock, executorId, simulatedGpus } = options;
  if (mode === 'none') return noGpus;
  if (mode === 'simulated') return createSimulatedDriver(executorId, simulatedGpus);
  const nvidia = createNvidiaDriver({ smi, clock });
  if (mode === 'nvidia') return nvidia;
  return createAutomaticDriver(nvidia, await problemOf(nvidia), options);
}

export const GPU_DETECTION_INTERVAL_MS = 60_000;
const MS_PER_SECOND = 1_000;
/** Maximum number of cards that a message names. */
const MAX_NAMED = 8;

/** Has no GPUs while NVIDIA's driver has a problem. `detect` checks again. */
async function createAutomaticDriver(
  nvidia: GpuDriver,
  problem: string | null,
  { clock, cardsOnBus }: Pick<GpuDriverOptions, 'clock' | 'cardsOnBus'>,
): Promise<GpuDriver> {
  let current = problem === null ? nvidia : noGpus;
  /** Why the cards on the bus cannot be used yet; null without such a card. */
  let obstacle: { text: string; nextMs: number } | null = null;
  if (problem !== null) recordObstacle(await cardsOrNull(), problem);

  /** Null if the bus cannot be read. */
  function cardsOrNull(): Promise<readonly PciCard[] | null> {
    return cardsOnBus().catch(() => null);
  }

  function recordObstacle(cards: readonly PciCard[] | null, reason: string): void {
    const nextMs = clock.monotonicMs() + GPU_DETECTION_INTERVAL_MS;
    const hasCards = cards !== null && cards.length > 0;
    obstacle = hasCards ? { text: `${describeCards(cards)}; ${reason}`, nextMs } : null;
  }

  function waiting({ text, nextMs }: { text: string; nextMs: number }): GpuReading {
    const seconds = Math.max(0, Math.ceil((nextMs - clock.monotonicMs()) / MS_PER_SECOND));
    const error = `waiting for the NVIDIA driver: ${text}; next attempt in ${seconds} s. To offer no GPUs, set AGENT_GPU=none`;
    return { ...NO_READING, error };
  }

  return {
    get kind() {
      return current.kind;
    },
    read: async () =>
      current === noGpus && obstacle !== null ? waiting(obstacle) : await current.read(),
    health: () => current.health(),
    isFree: (uuid: string) => current.isFree(uuid),
    async detect(): Promise<void> {
      if (current === nvidia) return;
      const cards = await cardsOrNull();
      // A host without cards starts no program every minute.
      const reason = cards?.length === 0 ? 'no card' : await problemOf(nvidia);
      if (reason === null) current = nvidia;
      else recordObstacle(cards, reason);
    },
  };
}

/** `2 NVIDIA cards on the PCI bus (0000:01:00.0 bound to nouveau, 0000:02:00.0 without driver)`. */
function describeCards(cards: readonly PciCard[]): string {
  const named = cards
    .slice(0, MAX_NAMED)
    .map(({ address, module }) =>
      module === null ? `${address} without driver` : `${address} bound to ${module}`,
    );
  const count = `${cards.length} NVIDIA card${cards.length === 1 ? '' : 's'} on the PCI bus`;
  return `${count} (${named.join(', ')}${cards.length > MAX_NAMED ? ', …' : ''})`;
}

/** Messages of nvidia-smi on a host without driver or card. */
const NO_GPU = /no devices were found|couldn't communicate with the nvidia driver/i;

/**
 * Returns why the host has no usable NVIDIA driver; null if it has one. A driver that hangs or has mismatched versions
 * counts as present, so that the fault is reported.
 */
async function problemOf(nvidia: GpuDriver): Promise<string | null> {
  const { devices, error } = await nvidia.read();
  if (devices.length > 0) return null;
  if (error === null) return 'nvidia-smi lists no card';
  return NO_GPU.test(error) || error.startsWith(PROGRAM_MISSING) ? error : null;
}

const NO_READING: GpuReading = {
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
};

const noGpus: GpuDriver = {
  kind: 'none',
  read: () => Promise.resolve(NO_READING),
  health: () => Promise.resolve(null),
  isFree: () => Promise.resolve(true),
};
