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
