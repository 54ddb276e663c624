/** Checks MIG instances, which are offered, paid and proven differently from whole cards. */
import { CardUuid } from '#shared/api/agent/challenges.ts';
import type { GpuDevice } from '#shared/api/agent/inventory.ts';
import { migSlicesOf } from '#shared/api/gpu-type.ts';
import { ok, unknown } from '#shared/check/check.ts';
import { defineCheck, type Facts, fail } from './check.ts';

/** UUIDs of MIG instances, both in the form of drivers from release 470 on and in the older form. */
const MIG_UUID = /^MIG-(?:GPU-)?[0-9a-f][0-9a-f/-]{0,80}$/;
/** Models without MIG. */
const NO_MIG =
  /GeForce|TITAN|Quadro|Tesla|RTX A\d|Ada Generation|\b(?:L4|L20|L40S?|A2|A10G?|A16|A40|T4|V100)\b/;
/** Profiles of compute instances: a `1c.3g.40gb` shares the memory of a `3g.40gb`. */
const SHARES_MEMORY = /^\dc\./;

export const gpuParts = defineCheck({
  id: 'gpu_parts',
  detects: 'whole cards reported as MIG instances, or instances that no card can have',
  required: 'MIG instances with valid names and UUIDs that fit into one card together',
  category: 'policy',
  mode: 'shadow',
  judge(facts) {
    const { devices, driver } = facts.inventory.gpu;
    if (driver !== 'nvidia' || devices.length === 0) return unknown('no card of a driver');
    for (const device of devices) {
      const problem =
        device.mig === null ? wholeProblem(device) : instanceProblem(device, device.mig);
      if (problem !== null) return invalid(`${device.name} (${device.uuid}): ${problem}`);
    }
    const instances = devices.filter(({ mig }) => mig !== null);
    const byCard = Map.groupBy(instances, ({ mig }) => mig?.parent_uuid ?? '');
    for (const [card, ofCard] of byCard) {
      const problem = sumProblem(ofCard, facts);
      if (problem !== null) return invalid(`${card}: ${problem}`);
    }
    return ok(`${devices.length - instances.length} whole, ${instances.length} parts`);
  },
  remedies: {
    GPU_PARTS_FALSE: 'Restart the agent; if the failure persists, reinstall the driver.',
  },
});

const invalid = (measured: string) =>
  fail('GPU_PARTS_FALSE', measured, 'Cards or MIG instances are not what they are reported as');

/** Describes why a device is not a whole card; null if it is one. Proofs identify whole cards by their UUIDs. */
function wholeProblem({ name, uuid }: GpuDevice): string | null {
  if (migSlicesOf(name) !== null) return 'the name of a part, of a whole card';
  return CardUuid.safeParse(uuid).success ? null : 'no UUID of a whole card';
}

function instanceProblem(
  { name, uuid }: GpuDevice,
  mig: NonNullable<GpuDevice['mig']>,
): string | null {
  if (migSlicesOf(name) === null || !name.endsWith(` MIG ${mig.profile}`)) {
    return `part ${mig.profile} under another name`;
  }
  if (!MIG_UUID.test(uuid)) return 'no UUID of a part';
  if (!CardUuid.safeParse(mig.parent_uuid).success) return 'it is part of no card';
  return NO_MIG.test(name) ? 'no driver splits this model' : null;
}

/** Describes how the instances of one card exceed its slices or its memory; null if they do not. */
function sumProblem(instances: readonly GpuDevice[], { policy }: Facts): string | null {
  const slices = instances.map(({ name }) => migSlicesOf(name));
  const cards = new Set(slices.map((each) => each?.card ?? ''));
  const [card = '', other] = cards;
  if (other !== undefined) return `parts of a ${card} and of a ${other}`;
  const of = slices[0]?.of ?? 0;
  const sum = slices.reduce((total, each) => total + (each?.slices ?? 0), 0);
  if (sum > of) return `${sum} of ${of} slices`;
  const [, most] = policy.checks.models[card] ?? [];
  const own = instances.filter(({ mig }) => !SHARES_MEMORY.test(mig?.profile ?? ''));
  const mib = own.reduce((total, { memory_total_mib: each }) => total + each, 0);
  return most !== undefined && mib > most ? `${mib} MiB in parts of a card of ${most}` : null;
}
