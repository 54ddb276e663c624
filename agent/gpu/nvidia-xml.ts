/** Reads `nvidia-smi -q -x`: what the CSV does not hold (CUDA version, processes). For any driver. */
import { amountOf, countOf, textOf } from './nvidia-value.ts';

export type XmlGpu = {
  uuid: string | null;
  name: string | null;
  pciBusId: string | null;
  memoryTotalMib: number | null;
  memoryUsedMib: number | null;
  powerDrawW: number | null;
  powerLimitW: number | null;
  processes: { pid: number; name: string | null; memoryMib: number | null }[];
};

export type XmlInventory = {
  driverVersion: string | null;
  cudaVersion: string | null;
  /** What the driver counts; may differ from the GPUs it lists. */
  attachedGpus: number | null;
  gpus: XmlGpu[];
};

export const XML_ARGS = ['-q', '-x'] as const;

const MAX_PROCESSES = 1_000;

/** Null when the text is no nvidia-smi document. */
export async function parseGpuXml(xml: string): Promise<XmlInventory | null> {
  // Loaded on first use: most runs of the agent never parse XML twice.
  const { XMLParser } = await import('fast-xml-parser');
  const parser = new XMLParser({
    ignoreAttributes: false,
    attributeNamePrefix: '@',
    parseTagValue: false,
    processEntities: true,
    isArray: (name) => name === 'gpu' || name === 'process_info',
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
    driverVersion: textAt(log, 'driver_version'),
    cudaVersion: textAt(log, 'cuda_version'),
    attachedGpus: countOf(rawAt(log, 'attached_gpus')),
    gpus: listAt(log, 'gpu').map(gpuFrom),
  };
}

function gpuFrom(gpu: unknown): XmlGpu {
  const memory = child(gpu, 'fb_memory_usage');
  // Drivers from 535 on renamed the section, split the draw, and call the limit "current".
  const power = child(gpu, 'gpu_power_readings') ?? child(gpu, 'power_readings');
  return {
    uuid: textAt(gpu, 'uuid'),
    name: textAt(gpu, 'product_name'),
    pciBusId: textOf(rawAt(gpu, '@id')) ?? textAt(child(gpu, 'pci'), 'pci_bus_id'),
    memoryTotalMib: countOf(rawAt(memory, 'total')),
    memoryUsedMib: countOf(rawAt(memory, 'used')),
    powerDrawW: first(power, ['power_draw', 'instant_power_draw', 'average_power_draw']),
    powerLimitW: first(power, ['current_power_limit', 'power_limit', 'enforced_power_limit']),
    processes: listAt(child(gpu, 'processes'), 'process_info')
      .slice(0, MAX_PROCESSES)
      .flatMap(processFrom),
  };
}

function processFrom(process: unknown): XmlGpu['processes'] {
  const pid = countOf(rawAt(process, 'pid'));
  if (pid === null) return [];
  const memoryMib = countOf(rawAt(process, 'used_memory'));
  return [{ pid, name: textAt(process, 'process_name'), memoryMib }];
}

function first(parent: unknown, names: readonly string[]): number | null {
  for (const name of names) {
    const amount = amountOf(rawAt(parent, name));
    if (amount !== null) return amount;
  }
  return null;
}

function child(parent: unknown, name: string): unknown {
  if (typeof parent !== 'object' || parent === null || !Object.hasOwn(parent, name))
    return undefined;
  return Reflect.get(parent, name);
}

function rawAt(parent: unknown, name: string): string | undefined {
  const value = child(parent, name);
  return typeof value === 'string' ? value : undefined;
}

function textAt(parent: unknown, name: string): string | null {
  return textOf(rawAt(parent, name));
}

function listAt(parent: unknown, name: string): unknown[] {
  const value = child(parent, name);
  return Array.isArray(value) ? value : [];
}
