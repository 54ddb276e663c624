/** GPUs that do not exist, for a marketplace on a machine without any. Labelled as such everywhere. */
import { createHash } from 'node:crypto';
import type { GpuDriver, GpuFigures } from './gpu-driver.ts';

const MAX_GPUS = 64;
const MAX_NAME_CHARS = 100;

/** `NVIDIA H100 80GB HBM3*2,NVIDIA GeForce RTX 4090*1` -> three names, or null if malformed. */
export function parseSimulatedGpus(text: string): string[] | null {
  const names: string[] = [];
  for (const entry of text.split(',')) {
    const match = /^\s*([^*]+?)\s*(?:\*\s*(\d{1,2})\s*)?$/.exec(entry);
    const name = match?.[1] ?? '';
    const count = Number(match?.[2] ?? 1);
    if (name === '' || name.length > MAX_NAME_CHARS || count < 1) return null;
    names.push(...Array.from({ length: count }, () => name));
  }
  return names.length <= MAX_GPUS ? names : null;
}

/** The same executor id gives the same UUIDs, so leases survive a restart. */
export function createSimulatedDriver(executorId: string, names: readonly string[]): GpuDriver {
  const devices = names.map((name, index) => idleGpu(executorId, name, index));
  const reading = { driverVersion: null, cudaVersion: null, devices, error: null, ageMs: 0 };
  return { kind: 'simulated', read: () => Promise.resolve(reading) };
}

/** Memory in MiB and power limit in watts, as the cards themselves report them. First match counts. */
const MODELS: readonly (readonly [RegExp, number, number])[] = [
  [/B200/, 183_359, 1000],
  [/H200/, 143_771, 700],
  [/H100/, 81_559, 700],
  [/A100.*40GB/, 40_960, 400],
  [/A100/, 81_920, 400],
  [/L40S/, 46_068, 350],
  [/A6000|6000 Ada/, 49_140, 300],
  [/L4\b/, 23_034, 72],
  [/T4\b/, 15_360, 70],
  [/5090/, 32_607, 575],
  [/4090/, 24_564, 450],
  [/3090/, 24_576, 350],
];
const DEFAULT_MODEL = [/(?:)/, 24_576, 300] as const;

const IDLE_TEMPERATURE_C = 30;
const IDLE_POWER_SHARE = 0.1;

function idleGpu(executorId: string, name: string, index: number): GpuFigures {
  const [, memoryMib, limitW] = MODELS.find(([pattern]) => pattern.test(name)) ?? DEFAULT_MODEL;
  return {
    index,
    uuid: uuidFor(executorId, index),
    name,
    memory_total_mib: memoryMib,
    memory_used_mib: 0,
    utilization_percent: 0,
    temperature_c: IDLE_TEMPERATURE_C,
    power_draw_w: limitW * IDLE_POWER_SHARE,
    power_limit_w: limitW,
    // No bus has it.
    pci_bus_id: null,
  };
}

function uuidFor(executorId: string, index: number): string {
  const hex = createHash('sha256').update(`${executorId} ${index}`).digest('hex');
  const parts = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    hex.slice(12, 16),
    hex.slice(16, 20),
    hex.slice(20, 32),
  ];
  return `GPU-${parts.join('-')}`;
}
