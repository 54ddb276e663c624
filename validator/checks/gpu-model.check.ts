/** Checks that the reported GPUs match the data of their model, and the kernel's report of the same cards. */
import type { GpuDevice } from '#shared/api/agent/inventory.ts';
import { ok, unknown } from '#shared/check/check.ts';
import { parseIsoTime } from '#shared/runtime/clock.ts';
import { compareVersions } from '#shared/runtime/version.ts';
import { defineCheck, fail, warn } from './check.ts';

const SIMULATED = 'simulated';

type Inventory = { gpu: { devices: readonly GpuDevice[] } };
const wholeCards = ({ gpu }: Inventory) => gpu.devices.filter(({ mig }) => mig === null);
/** UUIDs of physical cards: the MIG instances of one card count once. */
const cardUuids = ({ gpu }: Inventory) =>
  new Set(gpu.devices.map(({ uuid, mig }) => mig?.parent_uuid ?? uuid));

export const gpuCount = defineCheck({
  id: 'gpu_count',
  detects: 'more cards than fit into one host',
  required: 'at most `max_gpus` of the policy',
  category: 'policy',
  judge({ inventory, policy }) {
    const cards = cardUuids(inventory).size;
    if (cards === 0) return unknown('no GPU');
    if (cards <= policy.checks.max_gpus) return ok(String(cards));
    return fail('GPU_COUNT_IMPLAUSIBLE', String(cards), 'No host has so many cards');
  },
  remedies: { GPU_COUNT_IMPLAUSIBLE: 'Correct the record in the portal.' },
});

export const gpuModel = defineCheck({
  id: 'gpu_model',
  detects: 'a model that does not exist',
  required: 'models that `models` of the policy lists',
  category: 'policy',
  mode: 'shadow',
  judge({ inventory, policy }) {
    if (inventory.simulated) return unknown(SIMULATED);
    const names = wholeCards(inventory).map(({ name }) => name);
    if (names.length === 0) return unknown('no whole card');
    const unlisted = names.find((name) => policy.checks.models[name] === undefined);
    if (unlisted === undefined) return ok(names.join(', '));
    return fail(
      'GPU_MODEL_UNKNOWN',
      unlisted,
      'The policy does not list this model: the node earns no weight',
    );
  },
  remedies: {
    GPU_MODEL_UNKNOWN:
      'Report the model to the validator’s operator: the node can be rented, but it earns no weight until the policies list the model.',
  },
});

export const gpuVram = defineCheck({
  id: 'gpu_vram',
  detects: 'a card that reports the name of another model',
  required: 'the memory size of the reported model',
  category: 'policy',
  judge({ inventory, policy }) {
    if (inventory.simulated) return unknown(SIMULATED);
    const listed = wholeCards(inventory).flatMap((device) => {
      const range = policy.checks.models[device.name];
      return range === undefined ? [] : [{ ...device, from: range[0], to: range[1] }];
    });
    if (listed.length === 0) return unknown('no card of a known model');
    const wrong = listed.find(({ memory_total_mib: mib, from, to }) => mib < from || mib > to);
    if (wrong === undefined) return ok(`${listed.length} cards`);
    const { name, memory_total_mib: mib, from, to } = wrong;
    const measured = `${name}: ${mib} MiB, not ${from} to ${to}`;
    return fail('GPU_VRAM_MISMATCH', measured, 'The memory differs from that of the model');
  },
  remedies: {
    GPU_VRAM_MISMATCH:
      'Report the card to the validator’s operator if it is a genuine variant of the model.',
  },
});

export const gpuSourcesAgree = defineCheck({
  id: 'gpu_sources_agree',
  detects: 'an nvidia-smi that lists other cards than kernel and driver',
  required: 'nvidia-smi and driver list the same cards, and the PCI bus at least as many',
  category: 'policy',
  mode: 'shadow',
  judge({ inventory }) {
    const { gpu, sources } = inventory;
    if (gpu.driver !== 'nvidia' || sources === null) return unknown('no other source');
    const cards = cardUuids(inventory);
    const { pci_gpus: onBus, driver_gpus: atDriver } = sources;
    const measured = `nvidia-smi ${cards.size}, PCI ${onBus ?? '?'}, driver ${atDriver?.length ?? '?'}`;
    if (onBus === null && atDriver === null) return unknown(measured);
    // Cards on the bus that the driver does not list may be passed to virtual machines.
    const isCountEqual =
      (onBus ?? cards.size) >= cards.size && (atDriver?.length ?? cards.size) === cards.size;
    const unlisted = atDriver?.find(({ uuid }) => uuid !== null && !cards.has(uuid));
    if (isCountEqual && unlisted === undefined) return ok(measured);
    const message = 'Driver, PCI bus and nvidia-smi do not agree';
    return fail('GPU_SOURCES_DISAGREE', measured, message);
  },
  remedies: { GPU_SOURCES_DISAGREE: 'Reboot; if the failure persists, reinstall the driver.' },
});

export const driverLibrary = defineCheck({
  id: 'driver_library',
  detects: 'a driver library that is not NVIDIA’s',
  required: 'the digest of the driver’s package, if the policy lists it',
  category: 'policy',
  mode: 'shadow',
  judge({ inventory: { gpu, sources }, policy }) {
    const digest = sources?.driver_library_sha256 ?? null;
    const known = policy.checks.driver_libraries[gpu.driver_version ?? ''];
    if (digest === null || known === undefined) return unknown(gpu.driver_version ?? 'no driver');
    if (known.includes(digest)) return ok(digest);
    return fail(
      'DRIVER_LIBRARY_MISMATCH',
      digest,
      'The driver library differs from that of the driver’s package',
    );
  },
  remedies: { DRIVER_LIBRARY_MISMATCH: 'Reinstall the driver package.' },
});

export const driverMin = defineCheck({
  id: 'driver_min',
  detects: 'a driver that is too old',
  required:
    'at least the driver version `driver_min` of the policy, from the date of `driver_min` on',
  category: 'env',
  judge({ inventory: { gpu }, policy, receivedMs }) {
    const { version, from } = policy.checks.driver_min;
    const found = gpu.driver_version;
    const order =
      gpu.driver === 'nvidia' && found !== null ? compareVersions(found, version) : null;
    if (found === null || order === null) return unknown(found ?? 'no driver');
    if (order >= 0) return ok(found);
    const message = `The driver is older than ${version}`;
    const isDue = receivedMs >= (parseIsoTime(from) ?? 0);
    if (isDue) return fail('DRIVER_TOO_OLD', found, message);
    return warn(found, `${message}, which is required from ${from} on`);
  },
  remedies: { DRIVER_TOO_OLD: 'Upgrade the driver.' },
});
