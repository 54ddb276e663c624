/** The executor is what it was when it passed first, and its cards are nobody else's. */
import type { Inventory } from '#shared/api/agent/inventory.ts';
import { failed, type Judge, passed, unknown } from './check.ts';

const MAX_NAMED = 5;
/** A driver that is being loaded lists some of its cards; a record may be changed a moment before or after its host. */
const SEEN_AGAIN = { inARow: 2, isWithholding: true };

/** Model and count, `NVIDIA L4:2`; parts of it where cards differ. */
export function specOf({ gpu }: Pick<Inventory, 'gpu'>): string {
  const counts = new Map<string, number>();
  for (const { name } of gpu.devices) counts.set(name, (counts.get(name) ?? 0) + 1);
  const parts = [...counts].map(([name, count]) => `${name}:${count}`);
  return parts.sort().join(', ').slice(0, 200);
}

export const judgeSpecStable: Judge = ({ inventory, measured: { accepted } }) => {
  const spec = specOf(inventory);
  if (accepted === null || inventory.gpu.error !== null) return unknown(spec);
  if (accepted.spec === spec) return passed(spec);
  const message = `It was accepted as ${accepted.spec}`;
  return { ...failed('SPEC_CHANGED', spec, message), ...SEEN_AGAIN };
};

/** Parts of a card that is split are made anew. */
export const judgeUuidsStable: Judge = ({ inventory: { gpu }, measured: { accepted } }) => {
  const uuids = gpu.devices.map((device) => device.uuid);
  const isSplit = gpu.devices.some(({ mig }) => mig !== null);
  if (accepted === null || gpu.error !== null || isSplit) return unknown(`${uuids.length} cards`);
  const strange = uuids.filter((uuid) => !accepted.gpu_uuids.includes(uuid));
  const gone = accepted.gpu_uuids.filter((uuid) => !uuids.includes(uuid));
  if (strange.length + gone.length === 0) return passed(`${uuids.length} cards`);
  const words = [...gone.map((uuid) => `-${uuid}`), ...strange.map((uuid) => `+${uuid}`)];
  const measured = words.slice(0, MAX_NAMED).join(' ');
  return { ...failed('GPU_SET_CHANGED', measured, 'Other cards are in it'), ...SEEN_AGAIN };
};

export const judgeUuidsUnique: Judge = ({ inventory: { gpu }, measured: { taken } }) => {
  const [first] = taken;
  if (first === undefined) return passed(`${gpu.devices.length} cards`);
  const measured = `${first.uuid} is of executor ${first.executor_id}`;
  return failed('GPU_DUPLICATE', measured, 'Another executor has this card');
};
