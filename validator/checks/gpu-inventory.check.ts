/** Checks of the offered GPUs: type and count as listed, and the same cards as when the executor first passed. */
import type { Inventory } from '#shared/api/agent/inventory.ts';
import { matchesGpuType } from '#shared/api/gpu-type.ts';
import { ok, unknown } from '#shared/check/check.ts';
import { defineCheck, fail } from './check.ts';

/**
 * A failure must be confirmed on hosts that have passed with their current listing: a driver may omit cards while it
 * loads, and a provider may exchange cards shortly before changing the listing. Hosts that never passed fail at once.
 */
const CONFIRMED = { inARow: 2, isWithholding: true };
const MAX_NAMED = 5;
const NO_GPU =
  'The agent offers no GPU: set AGENT_GPU=nvidia, and check the driver with nvidia-smi.';

export const gpuInventory = defineCheck({
  id: 'gpu_inventory',
  detects: 'GPUs that differ from the offer',
  required: 'readable and distinct GPUs of the offered type and count',
  category: 'env',
  whileRented: true,
  judge({ inventory, executor, measured: { accepted }, policy }) {
    const { gpu, simulated } = inventory;
    const names = gpu.devices.map((device) => device.name);
    const measured = names.length === 0 ? 'no GPU' : names.join(', ');
    const confirmed = accepted === null ? {} : CONFIRMED;
    if (gpu.error !== null) {
      return { ...fail('GPU_UNREADABLE', gpu.error, 'The GPUs cannot be read'), ...confirmed };
    }
    if ((gpu.driver === 'simulated') !== simulated && gpu.driver !== 'none') {
      const message = 'The inventory calls its GPUs both real and simulated';
      return fail('GPU_SIMULATED', measured, message);
    }
    if (simulated && !policy.acceptSimulated) {
      return fail('GPU_SIMULATED', measured, 'The GPUs are simulated');
    }
    if (names.length !== executor.gpu_count) {
      const counts = `${names.length} of ${executor.gpu_count}: ${measured}`;
      const message = 'The number of GPUs differs from the offer';
      const remedy = names.length === 0 ? { remedy: NO_GPU } : {};
      return { ...fail('GPU_COUNT_MISMATCH', counts, message), ...confirmed, ...remedy };
    }
    if (new Set(gpu.devices.map((device) => device.uuid)).size !== names.length) {
      return fail('GPU_DUPLICATE', measured, 'Two GPUs have the same UUID');
    }
    const other = names.find((name) => !matchesGpuType(name, executor.gpu_type));
    if (other === undefined) return ok(measured);
    const message = `The offered type is ${executor.gpu_type}`;
    return { ...fail('GPU_MODEL_MISMATCH', other, message), ...confirmed };
  },
  remedies: {
    GPU_UNREADABLE: 'Reboot, or reinstall the driver.',
    GPU_SIMULATED: 'Start the agent with AGENT_GPU=nvidia.',
    GPU_COUNT_MISMATCH: 'Correct the record in the portal, or reseat the missing card.',
    GPU_DUPLICATE: 'Reinstall the driver.',
    GPU_MODEL_MISMATCH: 'Correct the GPU type in the portal.',
  },
});

/** Model and count, such as `NVIDIA L4:2`; one part for each model if cards differ. */
export function specOf({ gpu }: Pick<Inventory, 'gpu'>): string {
  const counts = new Map<string, number>();
  for (const { name } of gpu.devices) counts.set(name, (counts.get(name) ?? 0) + 1);
  const parts = [...counts].map(([name, count]) => `${name}:${count}`);
  return parts.sort().join(', ').slice(0, 200);
}

export const specStable = defineCheck({
  id: 'spec_stable',
  detects: 'a host whose GPU model or count changed',
  required: 'the model and count with which the executor was accepted',
  category: 'policy',
  judge({ inventory, measured: { accepted } }) {
    const spec = specOf(inventory);
    if (accepted === null || inventory.gpu.error !== null) return unknown(spec);
    if (accepted.spec === spec) return ok(spec);
    const message = `The executor was accepted as ${accepted.spec}`;
    return { ...fail('SPEC_CHANGED', spec, message), ...CONFIRMED };
  },
  remedies: { SPEC_CHANGED: 'Change type or number of GPUs in the portal.' },
});

export const gpuUuidStable = defineCheck({
  id: 'gpu_uuid_stable',
  detects: 'cards that were exchanged',
  required: 'the cards with which the executor was accepted',
  category: 'policy',
  whileRented: true,
  judge({ inventory: { gpu }, measured: { accepted } }) {
    const uuids = gpu.devices.map((device) => device.uuid);
    // MIG instances get new UUIDs at a reboot.
    const hasMig = gpu.devices.some(({ mig }) => mig !== null);
    if (accepted === null || gpu.error !== null || hasMig) return unknown(`${uuids.length} cards`);
    const added = uuids.filter((uuid) => !accepted.gpu_uuids.includes(uuid));
    const removed = accepted.gpu_uuids.filter((uuid) => !uuids.includes(uuid));
    if (added.length + removed.length === 0) return ok(`${uuids.length} cards`);
    const changes = [...removed.map((uuid) => `-${uuid}`), ...added.map((uuid) => `+${uuid}`)];
    const measured = changes.slice(0, MAX_NAMED).join(' ');
    return { ...fail('GPU_SET_CHANGED', measured, 'The host has other cards'), ...CONFIRMED };
  },
  remedies: { GPU_SET_CHANGED: 'Add the host again if its cards were exchanged permanently.' },
});

export const gpuUuidUnique = defineCheck({
  id: 'gpu_uuid_unique',
  detects: 'one card that two executors report',
  required: 'cards that no other executor has claimed earlier',
  category: 'policy',
  whileRented: true,
  judge({ inventory: { gpu }, measured: { taken } }) {
    const [first] = taken;
    if (first === undefined) return ok(`${gpu.devices.length} cards`);
    const measured = `${first.uuid} is of executor ${first.executor_id}`;
    return fail('GPU_DUPLICATE', measured, 'Another executor has this card');
  },
  remedies: {
    GPU_DUPLICATE: 'Run one executor for each card; the one that passed first keeps the card.',
  },
});
