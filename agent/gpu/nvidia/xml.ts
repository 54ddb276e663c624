/** Parses `nvidia-smi -q -x` of any driver version: what the CSV lacks (CUDA version, processes, health, MIG). */
import { type CardHealth, healthFrom } from './card-health.ts';
import { child, countOf, firstAmount, listAt, rawAt, textAt, textOf, versionOf } from './values.ts';

export type XmlGpu = {
  uuid: string | null;
  name: string | null;
  pciBusId: string | null;
  memoryTotalMib: number | null;
  memoryUsedMib: number | null;
  powerDrawW: number | null;
  powerLimitW: number | null;
  powerEnforcedLimitW: number | null;
  powerDefaultLimitW: number | null;
  powerMaxLimitW: number | null;
  processes: XmlProcess[];
  migDevices: XmlMigDevice[];
  health: CardHealth;
};

export type XmlProcess = {
  pid: number;
  name: string | null;
  memoryMib: number | null;
  /** A process may compute and draw; a process without a type counts as a compute process. */
  computes: boolean;
  draws: boolean;
  /** MIG instances of the process; null on a whole card. */
  gpuInstance: number | null;
  computeInstance: number | null;
};

export type XmlMigDevice = {
  index: number | null;
  gpuInstance: number | null;
  computeInstance: number | null;
  memoryTotalMib: number | null;
  memoryUsedMib: number | null;
  memoryReservedMib: number | null;
  memoryFreeMib: number | null;
};

export type XmlInventory = {
  driverVersion: string | null;
  cudaVersion: string | null;
  /** Number of GPUs as counted by the driver; may differ from the number of listed GPUs. */
  attachedGpus: number | null;
  gpus: XmlGpu[];
};

export const XML_ARGS = ['-q', '-x'] as const;

const MAX_PROCESSES = 1_000;
const MAX_MIG_DEVICES = 16;
const LISTS = new Set(['gpu', 'process_info', 'mig_device']);

/** Returns null if the text is not an nvidia-smi document. */
export async function parseGpuXml(xml: string): Promise<XmlInventory | null> {
  // Loaded on first use, to save memory where no GPU is present.
  const { XMLParser } = await import('fast-xml-parser');
  const parser = new XMLParser({
    ignoreAttributes: false,
    attributeNamePrefix: '@',
    parseTagValue: false,
    processEntities: true,
    isArray: (name) => LISTS.has(name),
  });
  let parsed: unknown;
  try {
    parsed = parser.parse(xml);
  } catch {
    return null;
  }
  const log = child(parsed, 'nvidia_smi_log');
  if (typeof log !== 'object') return null;
  return {
    // Driver 610 deprecates the older names and prints a remark behind their values.
    driverVersion: versionOf(rawAt(log, 'kmd_version')) ?? versionOf(rawAt(log, 'driver_version')),
    cudaVersion: versionOf(rawAt(log, 'cuda_umd_version')) ?? versionOf(rawAt(log, 'cuda_version')),
    attachedGpus: countOf(rawAt(log, 'attached_gpus')),
    gpus: listAt(log, 'gpu').map(gpuFrom),
  };
}

function gpuFrom(gpu: unknown): XmlGpu {
  const memory = child(gpu, 'fb_memory_usage');
  // Driver 535 renamed the section, split the power draw, and renamed the limit to "current".
  const power = child(gpu, 'gpu_power_readings') ?? child(gpu, 'power_readings');
  return {
    uuid: textAt(gpu, 'uuid'),
    name: textAt(gpu, 'product_name'),
    pciBusId: textOf(rawAt(gpu, '@id')) ?? textAt(child(gpu, 'pci'), 'pci_bus_id'),
    memoryTotalMib: countOf(rawAt(memory, 'total')),
    memoryUsedMib: countOf(rawAt(memory, 'used')),
    powerDrawW: powerOf(power, ['power_draw', 'instant_power_draw', 'average_power_draw']),
    powerLimitW: powerOf(power, [
      ...['requested_power_limit', 'power_limit', 'current_power_limit', 'enforced_power_limit'],
    ]),
    powerEnforcedLimitW: powerOf(power, ['enforced_power_limit', 'current_power_limit']),
    powerDefaultLimitW: powerOf(power, ['default_power_limit']),
    powerMaxLimitW: powerOf(power, ['max_power_limit']),
    processes: listAt(child(gpu, 'processes'), 'process_info')
      .slice(0, MAX_PROCESSES)
      .flatMap(processFrom),
    migDevices: listAt(child(gpu, 'mig_devices'), 'mig_device')
      .slice(0, MAX_MIG_DEVICES)
      .map(migDeviceFrom),
    health: healthFrom(gpu),
  };
}

/** Since driver 610, limits are in sections within the section. */
function powerOf(power: unknown, names: readonly string[]): number | null {
  const own = firstAmount(power, names);
  if (own !== null || typeof power !== 'object' || power === null) return own;
  const inner = Object.values(power).map((section) => firstAmount(section, names));
  return inner.find((watts) => watts !== null) ?? null;
}

function migDeviceFrom(device: unknown): XmlMigDevice {
  const memory = child(device, 'fb_memory_usage') ?? child(device, 'shared_fb_memory_usage');
  return {
    index: countOf(rawAt(device, 'index')),
    gpuInstance: countOf(rawAt(device, 'gpu_instance_id')),
    computeInstance: countOf(rawAt(device, 'compute_instance_id')),
    memoryTotalMib: countOf(rawAt(memory, 'total')),
    memoryUsedMib: countOf(rawAt(memory, 'used')),
    memoryReservedMib: countOf(rawAt(memory, 'reserved')),
    memoryFreeMib: countOf(rawAt(memory, 'free')),
  };
}

function processFrom(process: unknown): XmlGpu['processes'] {
  const pid = countOf(rawAt(process, 'pid'));
  if (pid === null) return [];
  const memoryMib = countOf(rawAt(process, 'used_memory'));
  const gpuInstance = countOf(rawAt(process, 'gpu_instance_id'));
  const computeInstance = countOf(rawAt(process, 'compute_instance_id'));
  const name = textAt(process, 'process_name');
  // `C`, `G`, `C+G`, or `M+C` for a client of the Multi-Process Service.
  const type = textAt(process, 'type') ?? 'C';
  const kinds = { computes: type.includes('C'), draws: type.includes('G') };
  return [{ pid, name, memoryMib, ...kinds, gpuInstance, computeInstance }];
}
