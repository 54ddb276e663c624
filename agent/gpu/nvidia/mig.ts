import type { GpuCard, GpuFigures, MigPart } from '../gpu-driver.ts';
import type { XmlGpu, XmlInventory, XmlMigDevice } from './xml.ts';

/** Reads `nvidia-smi -L`, the one place that names the UUIDs of MIG devices. Pure, and tolerant of any text. */

export type MigDevice = { profile: string; index: number; uuid: string };
export type ListedGpu = { uuid: string; migDevices: MigDevice[] };

export const LIST_ARGS = ['-L'] as const;

const MAX_GPUS = 64;
/** No card splits into more. */
const MAX_MIG_DEVICES = 16;

const GPU_LINE = /^GPU +\d{1,4}: .*\(UUID: (GPU-[0-9a-fA-F-]{36})\)\s*$/;
const MIG_LINE =
  /^\s+MIG +([0-9a-z.+]{1,32}) +Device +(\d{1,3}): +\(UUID: (MIG-[0-9a-fA-F-]{36})\)\s*$/;

/** Lines that are neither cards nor devices of the card before them are skipped. */
export function parseGpuList(stdout: string): ListedGpu[] {
  const gpus: ListedGpu[] = [];
  let skipping = true;
  for (const line of stdout.split('\n')) {
    const card = GPU_LINE.exec(line)?.[1];
    if (card !== undefined && gpus.length < MAX_GPUS) gpus.push({ uuid: card, migDevices: [] });
    // The devices of a card that is not understood must not go to the card before it.
    if (/^GPU\b/.test(line)) skipping = card === undefined;
    const device = migDeviceOf(line);
    const last = gpus.at(-1);
    if (skipping || device === null || last === undefined) continue;
    if (last.migDevices.length < MAX_MIG_DEVICES) last.migDevices.push(device);
  }
  return gpus;
}

/** Every UUID that is listed, of cards and of their parts: what a program sees in a container. */
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

// MERGED agent/gpu/nvidia/mig.ts: MIG devices put together from the list, which has their UUIDs, and the document, which has the rest. Pure.
const MIB_PER_GB = 1024;

/** Told of the whole card only. */
const UNKNOWN_OF_PARTS = {
  power_default_limit_w: null,
  graphics_clock_mhz: null,
  memory_clock_mhz: null,
  pcie_link: null,
  ecc_errors: null,
  processes: null,
};

/** The devices of split cards as they are offered. Utilization and power are known of whole cards only. */
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
        ...UNKNOWN_OF_PARTS,
        mig: { profile, parent_uuid: card.uuid },
      };
    });
  });
}

/** The same devices by their places in the card, for whoever follows them there. */
export function migParts(
  cards: readonly GpuCard[],
  list: readonly ListedGpu[],
  xml: XmlInventory | null,
): MigPart[] {
  return cards.flatMap((card) => {
    const listed = list.find(({ uuid }) => uuid === card.uuid)?.migDevices ?? [];
    return listed.map(({ profile, index, uuid }) => {
      const details = deviceAt(xmlCard(xml, card.uuid), index);
      const { gpuInstance = null, computeInstance = null, memoryUsedMib = null } = details ?? {};
      const place = { gpuInstance, computeInstance, memoryUsedMib };
      return { uuid, parentUuid: card.uuid, profile, ...place };
    });
  });
}

/**
 * Whether no process is in the device's instances. Null when that cannot be told: nvidia-smi names the card,
 * never the device, where it lists processes.
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
      // A process without an instance may be in any.
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

/** `3g.40gb` -> 40 GiB; profiles are named after the memory that they have at most. */
function memoryOf(profile: string): number {
  return Number(/\.(\d{1,4})gb/.exec(profile)?.[1] ?? 0) * MIB_PER_GB;
}
