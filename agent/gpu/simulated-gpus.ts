/** Simulated GPUs, for a marketplace on a host without real ones. Every view labels them as simulated. */
import { createHash } from 'node:crypto';
import type { GpuCard, GpuDriver, GpuFigures, GpuReading, MigPart } from './gpu-driver.ts';
import { IDLE, underLoad } from './simulated-load.ts';

/** Versions that a simulated card reports, so that clients can filter by them: an NVIDIA driver and its CUDA version. */
const SIMULATED_DRIVER_VERSION = '570.86.15';
const SIMULATED_CUDA_VERSION = '12.8';

const MAX_GPUS = 64;
const MAX_NAME_CHARS = 100;

/** A card's name and, for one that is split by MIG, the profiles of its devices: `NVIDIA H100[3g.40gb+1g.10gb*2]`. */
const CARD = /^([^*[\]]+?)\s*(?:\[([0-9a-z.+*\s]+)\])?$/;
const PROFILE = /^\s*(\d{1,2}g\.\d{1,4}gb)\s*(?:\*\s*([1-7])\s*)?$/;
/** NVIDIA's limit per card. */
const MAX_MIG_DEVICES = 7;

/** `NVIDIA H100 80GB HBM3*2,NVIDIA H100[3g.40gb+1g.10gb*4]` -> three cards, or null if malformed. */
export function parseSimulatedGpus(text: string): string[] | null {
  const cards: string[] = [];
  for (const entry of text.split(',')) {
    const match = /^\s*([^*[\]]+?(?:\[[^\]]*\])?)\s*(?:\*\s*(\d{1,2})\s*)?$/.exec(entry);
    const card = match?.[1] ?? '';
    const count = Number(match?.[2] ?? 1);
    const { name, profiles } = cardOf(card);
    if (name === '' || profiles === null || name.length > MAX_NAME_CHARS || count < 1) return null;
    cards.push(...Array.from({ length: count }, () => card));
  }
  return cards.length <= MAX_GPUS ? cards : null;
}

/** `profiles` is null if malformed, empty for a whole card. */
function cardOf(card: string): { name: string; profiles: string[] | null } {
  const [, name = '', list] = CARD.exec(card) ?? [];
  if (list === undefined) return { name, profiles: [] };
  const profiles = list.split('+').map((entry) => {
    const [, profile, count = '1'] = PROFILE.exec(entry) ?? [];
    return profile === undefined ? null : Array.from({ length: Number(count) }, () => profile);
  });
  const known = profiles.flatMap((group) => group ?? []);
  const malformed = profiles.includes(null) || known.length > MAX_MIG_DEVICES;
  return { name, profiles: malformed ? null : known };
}

/** A card and its MIG devices; none for a whole card. */
type SplitCard = { gpu: GpuFigures; parts: readonly GpuFigures[] };

/**
 * `cards`: as `parseSimulatedGpus` returns them. UUIDs depend only on executor id and position, so leases
 * survive restarts.
 */
export function createSimulatedDriver(executorId: string, cards: readonly string[]): GpuDriver {
  let split: readonly SplitCard[] = cards.map((card, index) => {
    const { name, profiles } = cardOf(card);
    const gpu = idleGpu(executorId, name, index);
    const parts = (profiles ?? []).map((profile, part) => migPart(executorId, gpu, profile, part));
    return { gpu, parts };
  });
  let reading = readingOf(split);
  return {
    kind: 'simulated',
    read: () => Promise.resolve(reading),
    follow(loads) {
      split = split.map(({ gpu, parts }) => ({
        gpu: underLoad(gpu, loads.get(gpu.uuid) ?? 0),
        parts: parts.map((part) => underLoad(part, loads.get(part.uuid) ?? 0)),
      }));
      reading = readingOf(split);
    },
    health: () => Promise.resolve(null),
    isFree: () => Promise.resolve(true),
  };
}

function readingOf(split: readonly SplitCard[]): GpuReading {
  return {
    driverVersion: SIMULATED_DRIVER_VERSION,
    cudaVersion: SIMULATED_CUDA_VERSION,
    topology: null,
    processes: [],
    devices: split.flatMap(({ gpu, parts }) => (parts.length === 0 ? [gpu] : parts)),
    cards: split.map(({ gpu, parts }) => cardFrom(gpu, parts.length > 0)),
    parts: split.flatMap(({ parts }) => parts.flatMap(placeOf)),
    error: null,
    ageMs: 0,
    exitCode: null,
  };
}

/** Returns the values that nvidia-smi would print. */
function cardFrom({ index, uuid, name, ...gpu }: GpuFigures, isSplit: boolean): GpuCard {
  const figures = {
    index,
    uuid,
    name,
    'memory.total': gpu.memory_total_mib,
    'memory.used': gpu.memory_used_mib,
    'memory.free': gpu.memory_total_mib - (gpu.memory_used_mib ?? 0),
    'utilization.gpu': gpu.utilization_percent,
    'utilization.memory': gpu.utilization_percent,
    'temperature.gpu': gpu.temperature_c,
    'power.draw': gpu.power_draw_w,
    'power.limit': gpu.power_limit_w,
    'power.default_limit': gpu.power_default_limit_w,
    'clocks.current.graphics': gpu.graphics_clock_mhz,
    'clocks.current.sm': gpu.graphics_clock_mhz,
    'clocks.current.memory': gpu.memory_clock_mhz,
    'mig.mode.current': isSplit ? 'Enabled' : 'Disabled',
    pstate: 'P8',
    'ecc.errors.uncorrected.volatile.total': gpu.ecc_errors,
    gpu_recovery_action: 'None',
  };
  const values = new Map(Object.entries(figures).map(([field, value]) => [field, String(value)]));
  return { index, uuid, name, pciBusId: null, values };
}

function placeOf({ uuid, mig, ...gpu }: GpuFigures, index: number): MigPart[] {
  if (mig === null) return [];
  const { memory_total_mib: total, memory_used_mib: used } = gpu;
  const { profile, parent_uuid: parentUuid } = mig;
  const memory = { memoryTotalMib: total, memoryUsedMib: used, memoryReservedMib: 0 };
  const memoryFreeMib = used === null ? null : total - used;
  const place = { gpuInstance: index + 1, computeInstance: 0 };
  return [{ uuid, parentUuid, profile, ...place, ...memory, memoryFreeMib }];
}

function migPart(executorId: string, card: GpuFigures, profile: string, part: number): GpuFigures {
  const memoryGib = Number(/(\d+)gb$/.exec(profile)?.[1] ?? 0);
  return {
    ...card,
    uuid: uuidFor(executorId, `${card.index}/${part}`).replace(/^GPU/, 'MIG'),
    name: `${card.name} MIG ${profile}`,
    memory_total_mib: memoryGib * 1024,
    utilization_percent: null,
    temperature_c: null,
    power_draw_w: null,
    power_limit_w: null,
    power_enforced_limit_w: null,
    power_default_limit_w: null,
    power_max_limit_w: null,
    graphics_clock_mhz: null,
    memory_clock_mhz: null,
    ecc_errors: null,
    processes: null,
    compute_processes: null,
    graphics_processes: null,
    mig: { profile, parent_uuid: card.uuid },
  };
}

/** Name pattern, memory in MiB, power limit in watts, as real cards report them. The first match counts. */
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

function idleGpu(executorId: string, name: string, index: number): GpuFigures {
  const [, memoryMib, limitW] = MODELS.find(([pattern]) => pattern.test(name)) ?? DEFAULT_MODEL;
  return {
    index,
    uuid: uuidFor(executorId, String(index)),
    name,
    memory_total_mib: memoryMib,
    memory_used_mib: 0,
    utilization_percent: 0,
    temperature_c: IDLE.temperatureC,
    power_draw_w: limitW * IDLE.powerShare,
    power_limit_w: limitW,
    power_enforced_limit_w: limitW,
    power_default_limit_w: limitW,
    power_max_limit_w: limitW,
    pci_bus_id: null,
    pcie_link: null,
    graphics_clock_mhz: IDLE.graphicsMhz,
    memory_clock_mhz: IDLE.memoryMhz,
    ecc_errors: 0,
    recovery_action: 'None',
    processes: 0,
    compute_processes: 0,
    graphics_processes: 0,
    mig: null,
  };
}

function uuidFor(executorId: string, place: string): string {
  const hex = createHash('sha256').update(`${executorId} ${place}`).digest('hex');
  const parts = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    hex.slice(12, 16),
    hex.slice(16, 20),
    hex.slice(20, 32),
  ];
  return `GPU-${parts.join('-')}`;
}
