/** Checks of the offered GPUs: type and count as listed, and the same cards as when the executor first passed. */
import type { Inventory } from '#shared/api/agent/inventory.ts';
import type { ExecutorToCheck } from '#shared/api/central/validator-routes.ts';
import { matchesGpuType } from '#shared/api/gpu-type.ts';
import { ok, unknown } from '#shared/check/check.ts';
import { defineCheck, fail, warn } from './check.ts';

const MAX_NAMED = 5;
const NO_GPU =
  'The agent offers no GPU: set AGENT_GPU=nvidia, and check the driver with nvidia-smi.';

export const gpuInventory = defineCheck({
  id: 'gpu_inventory',
  detects: 'GPUs that differ from the offer',
  required: 'readable and distinct GPUs of the offered type and count',
  category: 'env',
  whileRented: true,
  judge({ inventory, executor, policy }) {
    const { gpu, simulated } = inventory;
    const names = gpu.devices.map((device) => device.name);
    const measured = names.length === 0 ? 'no GPU' : names.join(', ');
    if (gpu.error !== null) {
      return fail('GPU_UNREADABLE', gpu.error, 'The GPUs cannot be read');
    }
    if ((gpu.driver === 'simulated') !== simulated && gpu.driver !== 'none') {
      const message = 'The inventory calls its GPUs both real and simulated';
      return { ...fail('GPU_SIMULATED', measured, message), isCertain: true };
    }
    if (simulated && !policy.acceptSimulated) {
      return { ...fail('GPU_SIMULATED', measured, 'The GPUs are simulated'), isCertain: true };
    }
    if (names.length !== executor.gpu_count) {
      const counts = `${names.length} of ${executor.gpu_count}: ${measured}`;
      const message = 'The number of GPUs differs from the offer';
      const remedy = names.length === 0 ? { remedy: NO_GPU } : {};
      return { ...fail('GPU_COUNT_MISMATCH', counts, message), ...remedy };
    }
    if (new Set(gpu.devices.map((device) => device.uuid)).size !== names.length) {
      return {
        ...fail('GPU_DUPLICATE', measured, 'Two GPUs have the same UUID'),
        isCertain: true,
      };
    }
    const other = names.find((name) => !matchesGpuType(name, executor.gpu_type));
    if (other === undefined) return ok(measured);
    return fail('GPU_MODEL_MISMATCH', other, `The offered type is ${executor.gpu_type}`);
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
    return fail('SPEC_CHANGED', spec, `The executor was accepted as ${accepted.spec}`);
  },
  remedies: { SPEC_CHANGED: 'Change type or number of GPUs in the portal.' },
});

/** Time after the start of an announced maintenance within which other cards are accepted. */
const EXCHANGE_MS = 24 * 3_600_000;

/** Returns true if other cards are accepted now, because their exchange was announced. */
export function isChangeAnnounced(
  { maintenance_ms: beganMs }: Pick<ExecutorToCheck, 'maintenance_ms'>,
  nowMs: number,
): boolean {
  return typeof beganMs === 'number' && beganMs <= nowMs && nowMs - beganMs <= EXCHANGE_MS;
}

export const gpuUuidStable = defineCheck({
  id: 'gpu_uuid_stable',
  detects: 'cards that were exchanged',
  required:
    'the cards with which the executor was accepted, or others since an announced maintenance that began within the last day',
  category: 'policy',
  whileRented: true,
  judge({ inventory: { gpu }, executor, receivedMs, measured: { accepted } }) {
    const uuids = gpu.devices.map((device) => device.uuid);
    // MIG instances get new UUIDs at a reboot.
    const hasMig = gpu.devices.some(({ mig }) => mig !== null);
    if (accepted === null || gpu.error !== null || hasMig) return unknown(`${uuids.length} cards`);
    const added = uuids.filter((uuid) => !accepted.gpu_uuids.includes(uuid));
    const removed = accepted.gpu_uuids.filter((uuid) => !uuids.includes(uuid));
    if (added.length + removed.length === 0) return ok(`${uuids.length} cards`);
    const changes = [...removed.map((uuid) => `-${uuid}`), ...added.map((uuid) => `+${uuid}`)];
    const measured = changes.slice(0, MAX_NAMED).join(' ');
    if (isChangeAnnounced(executor, receivedMs)) {
      return warn(measured, 'Cards were exchanged in an announced maintenance');
    }
    return fail('GPU_SET_CHANGED', measured, 'The host has other cards');
  },
  remedies: {
    GPU_SET_CHANGED:
      'Announce a maintenance of the node in the portal: the new cards are accepted when it has begun.',
  },
});

export const gpuUuidUnique = defineCheck({
  id: 'gpu_uuid_unique',
  detects: 'one card that two executors report',
  required:
    'cards of which no other executor proves the possession, and that no other has claimed earlier',
  category: 'policy',
  whileRented: true,
  judge({ inventory: { gpu }, measured: { taken } }) {
    const [first] = taken;
    if (first === undefined) return ok(`${gpu.devices.length} cards`);
    const measured = `${first.uuid} is of executor ${first.executor_id}`;
    const failure = fail('GPU_DUPLICATE', measured, 'Another executor has this card');
    return { ...failure, isCertain: true };
  },
  remedies: {
    GPU_DUPLICATE:
      'Run one executor for each card; the one that proves its work, or passed first, keeps the card.',
  },
});
