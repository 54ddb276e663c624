/** What the GPUs say of themselves fits what is known of their model, and what the kernel says of the same cards. */
import { parseIsoTime } from '#shared/runtime/clock.ts';
import { compareVersions } from '#shared/runtime/version.ts';
import { failed, type Judge, passed, unknown } from './check.ts';

const SIMULATED = 'simulated';

export const judgeGpuCount: Judge = ({ inventory, policy }) => {
  // A card that is split counts once.
  const cards = new Set(inventory.gpu.devices.map(({ uuid, mig }) => mig?.parent_uuid ?? uuid))
    .size;
  if (cards === 0) return unknown('no GPU');
  if (cards <= policy.checks.max_gpus) return passed(String(cards));
  return failed('GPU_COUNT_IMPLAUSIBLE', String(cards), 'No host has so many cards');
};

export const judgeGpuModel: Judge = ({ inventory, policy }) => {
  if (inventory.simulated) return unknown(SIMULATED);
  const names = wholeCards(inventory).map(({ name }) => name);
  if (names.length === 0) return unknown('no whole card');
  const strange = names.find((name) => policy.checks.models[name] === undefined);
  if (strange === undefined) return passed(names.join(', '));
  return failed('GPU_MODEL_UNKNOWN', strange, 'The policy does not know this model');
};

export const judgeGpuVram: Judge = ({ inventory, policy }) => {
  if (inventory.simulated) return unknown(SIMULATED);
  const known = wholeCards(inventory).flatMap((device) => {
    const window = policy.checks.models[device.name];
    return window === undefined ? [] : [{ ...device, from: window[0], to: window[1] }];
  });
  if (known.length === 0) return unknown('no card of a known model');
  const wrong = known.find(({ memory_total_mib: mib, from, to }) => mib < from || mib > to);
  if (wrong === undefined) return passed(`${known.length} cards`);
  const { name, memory_total_mib: mib, from, to } = wrong;
  const measured = `${name}: ${mib} MiB, not ${from} to ${to}`;
  return failed('GPU_VRAM_MISMATCH', measured, 'The memory is not that of the model');
};

export const judgeGpuSources: Judge = ({ inventory: { gpu, sources } }) => {
  if (gpu.driver !== 'nvidia' || sources === null) return unknown('no other source');
  const cards = new Set(gpu.devices.map(({ uuid, mig }) => mig?.parent_uuid ?? uuid));
  const { pci_gpus: onBus, driver_gpus: atDriver } = sources;
  const measured = `nvidia-smi ${cards.size}, PCI ${onBus ?? '?'}, driver ${atDriver?.length ?? '?'}`;
  if (onBus === null && atDriver === null) return unknown(measured);
  const isCountEqual =
    (onBus ?? cards.size) === cards.size && (atDriver?.length ?? cards.size) === cards.size;
  const strange = atDriver?.find(({ uuid }) => uuid !== null && !cards.has(uuid));
  if (isCountEqual && strange === undefined) return passed(measured);
  return failed('GPU_SOURCES_DISAGREE', measured, 'Driver, PCI bus and nvidia-smi do not agree');
};

export const judgeDriverLibrary: Judge = ({ inventory: { gpu, sources }, policy }) => {
  const digest = sources?.driver_library_sha256 ?? null;
  const known = policy.checks.driver_libraries[gpu.driver_version ?? ''];
  if (digest === null || known === undefined) return unknown(gpu.driver_version ?? 'no driver');
  if (known.includes(digest)) return passed(digest);
  return failed('DRIVER_LIBRARY_MISMATCH', digest, 'The library is not that of the driver');
};

export const judgeDriverMin: Judge = ({ inventory: { gpu }, policy, receivedMs }) => {
  const { version, from } = policy.checks.driver_min;
  const found = gpu.driver_version;
  const order = gpu.driver === 'nvidia' && found !== null ? compareVersions(found, version) : null;
  if (found === null || order === null) return unknown(found ?? 'no driver');
  if (order >= 0) return passed(found);
  const message = `The driver is older than ${version}`;
  const isDue = receivedMs >= (parseIsoTime(from) ?? 0);
  if (isDue) return failed('DRIVER_TOO_OLD', found, message);
  return { status: 'passed', measured: found, warning: `${message}, which counts from ${from}` };
};

type Devices = {
  gpu: { devices: readonly { name: string; mig: unknown; memory_total_mib: number }[] };
};

const wholeCards = ({ gpu }: Devices) => gpu.devices.filter(({ mig }) => mig === null);
