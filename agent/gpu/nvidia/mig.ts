/**
 * MIG devices, joined from two outputs of nvidia-smi: the list (`-L`), the only one with their UUIDs, and the XML
 * document, which has everything else. Pure; accepts any text.
 */
import type { GpuCard, GpuFault, GpuFigures, HealthReading, MigPart } from '../gpu-driver.ts';
import { textOf } from './values.ts';
import type { XmlGpu, XmlInventory, XmlMigDevice } from './xml.ts';

export type MigDevice = { profile: string; index: number; uuid: string };
export type ListedGpu = { uuid: string; migDevices: MigDevice[] };

export const LIST_ARGS = ['-L'] as const;

const MAX_GPUS = 64;
/** Upper bound on the parsed devices of one card; NVIDIA's limit is 7. */
const MAX_MIG_DEVICES = 16;

const GPU_LINE = /^GPU +\d{1,4}: .*\(UUID: (GPU-[0-9a-fA-F-]{36})\)\s*$/;
const MIG_LINE =
  /^\s+MIG +([0-9a-z.+]{1,32}) +Device +(\d{1,3}): +\(UUID: (MIG-[0-9a-fA-F-]{36})\)\s*$/;

/** Parses `nvidia-smi -L`. Skips lines that are neither cards nor devices of the preceding card. */
export function parseGpuList(stdout: string): ListedGpu[] {
  const gpus: ListedGpu[] = [];
  let skipping = true;
  for (const line of stdout.split('\n')) {
    const card = GPU_LINE.exec(line)?.[1];
    if (card !== undefined && gpus.length < MAX_GPUS) gpus.push({ uuid: card, migDevices: [] });
    // Devices of a malformed card must not be attributed to the card before it.
    if (/^GPU\b/.test(line)) skipping = card === undefined;
    const device = migDeviceOf(line);
    const last = gpus.at(-1);
    if (skipping || device === null || last === undefined) continue;
    if (last.migDevices.length < MAX_MIG_DEVICES) last.migDevices.push(device);
  }
  return gpus;
}

/** Returns all listed UUIDs of cards and MIG devices: those that a program in a container can use. */
export function listedUuids(stdout: string): Set<string> {
  return new Set(
    parseGpuList(stdout).flatMap(({ uuid, migDevices }) => [
      uuid,
      ...migDevices.map((device) => device.uuid),
    ]),
  );
}

function migDeviceOf(line: string): MigDevice | null {
  const [, profile, index, uuid] = MIG_LINE.exec(line) ?? [];
  if (profile === undefined || index === undefined || uuid === undefined) return null;
  return { profile, index: Number(index), uuid };
}

const MIB_PER_GB = 1024;

/** Values that are only known for whole cards. */
const WHOLE_CARD_ONLY = {
  power_enforced_limit_w: null,
  power_default_limit_w: null,
  power_max_limit_w: null,
  graphics_clock_mhz: null,
  memory_clock_mhz: null,
  pcie_link: null,
  ecc_errors: null,
  processes: null,
  compute_processes: null,
  graphics_processes: null,
};

/** Returns the devices of split cards as they are offered. Utilization and power are only known for whole cards. */
export function migFigures(
  cards: readonly GpuCard[],
  list: readonly ListedGpu[],
  xml: XmlInventory | null,
): GpuFigures[] {
  return cards.flatMap((card) => {
    const listed = list.find(({ uuid }) => uuid === card.uuid)?.migDevices ?? [];
    return listed.map(({ profile, index, uuid }): GpuFigures => {
      const details = deviceAt(xmlCard(xml, card.uuid), index);
      return {
        index: card.index,
        uuid,
        name: `${card.name} MIG ${profile}`,
        memory_total_mib: details?.memoryTotalMib ?? memoryOf(profile),
        memory_used_mib: details?.memoryUsedMib ?? null,
        utilization_percent: null,
        temperature_c: null,
        power_draw_w: null,
        power_limit_w: null,
        pci_bus_id: card.pciBusId,
        ...WHOLE_CARD_ONLY,
        recovery_action: textOf(card.values.get('gpu_recovery_action')),
        mig: { profile, parent_uuid: card.uuid },
      };
    });
  });
}

/** Returns the same devices with their instance ids, for metrics. */
export function migParts(
  cards: readonly GpuCard[],
  list: readonly ListedGpu[],
  xml: XmlInventory | null,
): MigPart[] {
  return cards.flatMap((card) => {
    const listed = list.find(({ uuid }) => uuid === card.uuid)?.migDevices ?? [];
    return listed.map(({ profile, index, uuid }) => {
      const details = deviceAt(xmlCard(xml, card.uuid), index);
      return {
        uuid,
        parentUuid: card.uuid,
        profile,
        gpuInstance: details?.gpuInstance ?? null,
        computeInstance: details?.computeInstance ?? null,
        memoryTotalMib: details?.memoryTotalMib ?? null,
        memoryUsedMib: details?.memoryUsedMib ?? null,
        memoryReservedMib: details?.memoryReservedMib ?? null,
        memoryFreeMib: details?.memoryFreeMib ?? null,
      };
    });
  });
}

const SHARED: GpuFault = {
  reason: 'MemoryShared',
  message:
    'other MIG devices use the same memory; create GPU instances with one compute instance each (nvidia-smi mig -cgi PROFILE -C)',
};

/**
 * Returns all MIG devices. The compute instances of one GPU instance have no separate memory: a program in one of
 * them can use up the memory of the others.
 */
export function migFaults(
  list: readonly ListedGpu[],
  xml: XmlInventory,
): HealthReading['migDevices'] {
  return list.flatMap(({ uuid: cardUuid, migDevices }) => {
    const card = xmlCard(xml, cardUuid);
    return migDevices.map(({ uuid, index }) => {
      const instance = deviceAt(card, index)?.gpuInstance ?? null;
      const sharers = card?.migDevices.filter(({ gpuInstance }) => gpuInstance === instance);
      const isShared = instance !== null && (sharers?.length ?? 0) > 1;
      return { uuid, fault: isShared ? SHARED : null };
    });
  });
}

/**
 * Returns true if no process runs in the device's instances; null if unknown. In its process lists nvidia-smi
 * names the card and the instance, never the device.
 */
export function isMigFree(
  uuid: string,
  list: readonly ListedGpu[],
  xml: XmlInventory,
): boolean | null {
  const parent = list.find(({ migDevices }) => migDevices.some((device) => device.uuid === uuid));
  const listed = parent?.migDevices.find((device) => device.uuid === uuid);
  const card = xmlCard(xml, parent?.uuid ?? '');
  const device = listed === undefined ? undefined : deviceAt(card, listed.index);
  if (card === undefined || device === undefined || device.gpuInstance === null) return null;
  return !card.processes.some(
    ({ gpuInstance, computeInstance }) =>
      // A process without an instance id may run in any instance.
      gpuInstance === null ||
      (gpuInstance === device.gpuInstance &&
        (computeInstance === null || computeInstance === device.computeInstance)),
  );
}

function xmlCard(xml: XmlInventory | null, uuid: string): XmlGpu | undefined {
  return xml?.gpus.find((gpu) => gpu.uuid === uuid);
}

function deviceAt(card: XmlGpu | undefined, index: number): XmlMigDevice | undefined {
  return card?.migDevices.find((device) => device.index === index);
}

/** `3g.40gb` -> 40 GiB in MiB: the profile's name contains its maximum of memory. */
function memoryOf(profile: string): number {
  return Number(/\.(\d{1,4})gb/.exec(profile)?.[1] ?? 0) * MIB_PER_GB;
}
