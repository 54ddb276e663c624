/** What is told as a part of a card (MIG) can be one: parts are offered, paid and proven otherwise than whole cards. */
import { CardUuid } from '#shared/api/agent/challenges.ts';
import type { GpuDevice } from '#shared/api/agent/inventory.ts';
import { migSlicesOf } from '#shared/api/gpu-type.ts';
import { type Facts, failed, type Judge, passed, unknown } from './check.ts';

/** As drivers write UUIDs of parts: since release 470, and before. */
const PART_UUID = /^MIG-(?:GPU-)?[0-9a-f][0-9a-f/-]{0,80}$/;
/** Cards that no driver splits, however new it is. */
const NEVER_SPLIT =
  /GeForce|TITAN|Quadro|Tesla|RTX A\d|Ada Generation|\b(?:L4|L20|L40S?|A2|A10G?|A16|A40|T4|V100)\b/;
/** `1c.3g.40gb` shares the memory of a `3g.40gb` with others. */
const SHARES_MEMORY = /^\dc\./;

export const judgeGpuParts: Judge = (facts) => {
  const { devices, driver } = facts.inventory.gpu;
  if (driver !== 'nvidia' || devices.length === 0) return unknown('no card of a driver');
  for (const device of devices) {
    const problem = device.mig === null ? wholeProblem(device) : partProblem(device, device.mig);
    if (problem !== null) return refused(`${device.name} (${device.uuid}): ${problem}`);
  }
  const parts = devices.filter(({ mig }) => mig !== null);
  const byCard = Map.groupBy(parts, ({ mig }) => mig?.parent_uuid ?? '');
  for (const [card, ofCard] of byCard) {
    const problem = sumProblem(ofCard, facts);
    if (problem !== null) return refused(`${card}: ${problem}`);
  }
  return passed(`${devices.length - parts.length} whole, ${parts.length} parts`);
};

const refused = (measured: string) =>
  failed(
    'GPU_PARTS_FALSE',
    measured,
    'Whole cards and parts of cards are not what they are told as',
  );

/** Only cards are asked for their work, and they are known by their UUIDs. */
function wholeProblem({ name, uuid }: GpuDevice): string | null {
  if (migSlicesOf(name) !== null) return 'the name of a part, of a whole card';
  return CardUuid.safeParse(uuid).success ? null : 'no UUID of a whole card';
}

function partProblem({ name, uuid }: GpuDevice, mig: NonNullable<GpuDevice['mig']>): string | null {
  if (migSlicesOf(name) === null || !name.endsWith(` MIG ${mig.profile}`)) {
    return `part ${mig.profile} under another name`;
  }
  if (!PART_UUID.test(uuid)) return 'no UUID of a part';
  if (!CardUuid.safeParse(mig.parent_uuid).success) return 'it is part of no card';
  return NEVER_SPLIT.test(name) ? 'no driver splits this model' : null;
}

/** Together they have no more than their card. */
function sumProblem(parts: readonly GpuDevice[], { policy }: Facts): string | null {
  const slices = parts.map(({ name }) => migSlicesOf(name));
  const cards = new Set(slices.map((each) => each?.card ?? ''));
  const [card = '', other] = cards;
  if (other !== undefined) return `parts of a ${card} and of a ${other}`;
  const of = slices[0]?.of ?? 0;
  const sum = slices.reduce((total, each) => total + (each?.slices ?? 0), 0);
  if (sum > of) return `${sum} of ${of} slices`;
  const [, most] = policy.checks.models[card] ?? [];
  const own = parts.filter(({ mig }) => !SHARES_MEMORY.test(mig?.profile ?? ''));
  const mib = own.reduce((total, { memory_total_mib: each }) => total + each, 0);
  return most !== undefined && mib > most ? `${mib} MiB in parts of a card of ${most}` : null;
}
